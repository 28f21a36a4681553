"""Find sentences that give orders or say what somebody wants, in ten languages. Pure.

They are looked for where a changed text may not begin to do either. A word too many in these lists
causes a needless question; a word too few lets a planted order through.
"""

import re

# These long lists are compiled by ``re`` at the first use, which is a dream's.
_ORDER = (
    r"(?i)"
    r"\b(?:always|never|must(?:n't)?|shall|should(?:n't)?|ought to|(?:do not|don't|make sure|please"
    r"|ensure|remember to|be sure|have to|has to|need to|needs to|you|your|instead of asking"
    r"|without asking|from now on)"
    # German, Spanish, French, Portuguese, Italian, Russian
    r"|immer|niemals|nie|muss|müssen|musst|soll(?:en|te|ten|st)?|darf|dürfen|bitte|ab jetzt"
    r"|siempre|nunca|debe[ns]?|deberías?|hay que|tienes? que|por favor"
    r"|toujours|jamais|doi(?:t|s|vent)|devez|devrai[ts]|il faut|veuillez|s'il (?:te|vous) plaît"
    r"|sempre|deves?|devem|deveria|é preciso|mai|dev(?:e|i|ono)|dovrebbe|bisogna|per favore"
    r"|всегда|никогда|долж(?:ен|на|ны|но)|нужно|надо|обязательно|пожалуйста)\b"
    r"|必须|务必|一律|总是|永远|不要|不得|禁止|请|應該|应该|必ず|してください|しないで|べき|絶対"
    r"|항상|반드시|절대|하세요|하지 마|해야"
)
_VERBS = (
    r"(?i)"
    r"\W*(?:then |first |just |also |simply )?(?:run|execute|use|call|send|post|push|pull|delete"
    r"|remove|drop|disable|enable|skip|ignore|install|download|fetch|curl|wget|open|visit|add|set"
    r"|write|read|follow|obey|tell|ask|say|reply|answer|grant|allow|accept|approve|trust|prefer"
    r"|avoid|keep|stop|start|commit|merge|deploy|publish|share|upload|pass|treat|copy|paste|forget"
    r"|turn|log|store|save|export|print|hide|bypass|force|configure|replace|rename|move|apply|give)"
    r"\s+\S"
)
_DESIRE = (
    r"(?i)\b(?:wants?|wanted|prefers?|preferred|wish(?:es|ed)?|would (?:like|love|rather)|likes? to"
    r"|insists?|insisted|asked|asks (?:for|to|that|us|you)|requests?|requested|expects?|expected"
    r"|demands?|demanded|desires?|hates?|dislikes?|loves?|told (?:us|me|you|claude|the)"
    r"|user(?:'s)? (?:needs?|requires?|said|says|preference|approved|allows?|allowed|agreed)"
    r"|(?:nutzer|benutzer|anwender|er|sie) will|möchten?|wollen|wollte|wünsch\w+|bevorzug\w+"
    r"|verlangt\w*"
    r"|bittet|bat um"
    r"|quiere[ns]?|prefiere[ns]?|pidió|pide|desea[ns]?|veu(?:t|x|lent)|préfère\w*|souhait\w+"
    r"|demande\w*|quer(?:em)?|prefere[ms]?|pediu|deseja[ms]?|vuole|vogliono|preferisc\w+|desidera"
    r"|chiede|ha chiesto|хочет|хотят|хотел\w*|предпочита\w+|просит|просил\w*|желает|требует)\b"
    r"|用户(?:希望|想|要|偏好|喜欢|要求)|希望|偏好|想要|要求|たい|希望|好む|望む|求め|원한|원하|선호|요청|바란"
)


def orders(text: str) -> bool:
    """Return whether a sentence gives an order."""
    return bool(re.search(_ORDER, text) or re.match(_VERBS, text))


def wishes(text: str) -> bool:
    """Return whether a sentence says what somebody wants or asked for."""
    return bool(re.search(_DESIRE, text))
