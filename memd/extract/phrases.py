r"""Phrases of ten languages by which a person's sentences are recognised without a model. Pure.

Each list is one pattern, in this order: English, German, Spanish, French, Portuguese, Italian,
Russian, Chinese, Japanese, Korean. A list is compiled at its first use by a library that matches in
linear time: there is no look-around, and ``\w`` is anything but white space and punctuation. Words
match whole and without regard to case; an entry with Chinese, Japanese or Korean matches anywhere.
"""

# ruff: noqa: RUF001 - patterns in ten languages

import re
from functools import cached_property
from typing import Any

from memd.base import regex
from memd.text.words import WIDE

_WIDE = f"[{WIDE}]"
_ANCHOR = r"(?<!\[)\^|\$"
_NOTHING = r"\z\A."  # matches no text
_LETTER = r"[^\s.,;:!?\"'()]"  # small in the library's automaton, as ``[\pL\pN_]`` is not


class Phrases:
    """A list of phrases as patterns; ``^`` is the beginning of a sentence, ``$`` its end."""

    def __init__(self, *entries: str) -> None:
        self.entries = entries

    def span(self, text: str) -> tuple[int, int] | None:
        """Return where the first phrase of the list begins and ends in a text."""
        match = self._pattern.search(_utf8(text))
        if match is None:
            return None
        start, end = match.span(1 if match.group(1) is not None else 2)
        return int(start), int(end)

    def match(self, text: str) -> bool:
        """Return whether a text has a phrase of the list."""
        return self._pattern.search(_utf8(text)) is not None

    def without(self, text: str) -> str:
        """Return a text without the phrases of the list."""
        while (span := self.span(text)) is not None:
            text = f"{text[: span[0]]} {text[span[1] :]}"
        return text

    @cached_property
    def _pattern(self) -> Any:
        return regex.own(self.pattern(self.entries))

    @staticmethod
    def pattern(entries: tuple[str, ...]) -> str:
        """Return one pattern for some entries, whole words in group 1 and others in group 2."""
        any_script = [entry.replace(r"\w", _LETTER) for entry in entries]
        wide = "|".join(entry for entry in any_script if re.search(_WIDE, entry)) or _NOTHING
        words = "|".join(entry for entry in any_script if not re.search(_WIDE, entry)) or _NOTHING
        return rf"(?i)(?:^|[^\pL\pN_])({words})(?:$|[^\pL\pN_])|({wide})"


def any_of(*lists: Phrases) -> Phrases:
    """Return the phrases of several lists as one, anywhere in a text of several sentences."""
    return Phrases(*(re.sub(_ANCHOR, "", entry) for each in lists for entry in each.entries))


def _utf8(text: str) -> str:
    """Return a text without lone surrogates, which the library does not take."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


# Asks to remember what the sentence says, or the one before it.
REMEMBER = Phrases(
    r"(?:(?:please|pls|and|but|also|so|ok(?:ay)?|just|always),? )*(?:rem(?:em|e|m|eme)?(?:b"
    r"|eb)er(?: that| this| it)?"
    r"|keep in mind(?: that)?|bear in mind(?: that)?|(?:don'?t|do not) forget(?: that)?"
    r"|memori[sz]e(?: that| this| it)?|(?:make a|take|keep a) note(?: that| of this| of it)?"
    r"|please note(?: that)?|for the record|for future reference|fyi|i remind you"
    r"|(?:save|store|add|put|commit) (?:this|that|it) (?:in|to|into) (?:your |the )?memory)",
    r"^(?:please )?(?:(?:save|store|record) (?:this|that)|(?:note|write) (?:this|that) down)",
    r"(?:bitte )?(?:(?:merke?|notiere?) dir(?: (?:das|dass|bitte|mal|doch))*|vergiss (?:das "
    r"|es )?nicht|denke? (?:bitte )?d(?:a)?ran|speicher(?:e)? dir(?: ab)?(?: dass)?"
    r"|nicht vergessen)|bitte merken|^merken|behalte? (?:bitte )?im (?:hinter)?kopf",
    r"(?:por favor,? )?(?:recuerda(?: que| esto| eso)?|recuérdalo|no (?:te |lo )?olvides"
    r"|ten(?:lo)? en cuenta|(?:anota|apunta)(?:lo)?(?: esto| eso)?|acuérdate)",
    r"souviens[- ]t(?:oi|'en)|n(?:e l)?'oublie (?:surtout )?pas|(?:retiens|note)(?: (?:stp|svp"
    r"|bien|ça|ceci"
    r"|cela))+|retiens|rappelle[- ]toi|garde en tête"
    r"|prends note|note bien",
    r"lembre(?:-se)?(?: disso)?|não (?:se |te )?esque(?:ça|ce|cer)s?(?: disso)?|tenha em mente"
    r"|(?:anot[ae]|guard[ae])(?: aí| isto| isso)+|anote|lembra(?:-te)?(?: de)? que",
    r"ricorda(?:ti|lo|telo)?|non dimenticare|tieni (?:presente|a mente)|annota(?:lo)?|segnati",
    r"(?:пожалуйста,? )?(?:запомни(?:те)?(?:,? пожалуйста)?(?: это)?|не забудь(?:те)?|не забывай"
    r"|имей в виду|учти"
    r"|запиши себе|добавь себе)",
    "请?(?:记住|记得|别忘了?|牢记|记一下|记下来)(?:了|这个|这一?点)?",
    "(?:を|ことを|よう|と|って)?(?:覚えておいて|覚えてください|覚えてね|覚えといて"
    "|忘れないで(?:ほしい(?:んだけど|んですが|のですが))?|メモして"
    "|記憶して)(?:おいて)?(?:ください|ね)?",
    "기억해(?: ?줘| ?주세요| ?둬)?|잊지 ?마(?:세요)?|명심해|메모해(?: ?줘| ?주세요| ?둬)?",
)
# The same as a polite question, or with words before it that would make a recollection of it.
REMEMBER_QUESTION = Phrases(
    r"(?:can|could|would|will) you (?:(?:please|pls|also|maybe|kindly) )*(?:remember|memori[sz]e"
    r"|keep in mind"
    r"|bear in mind|note|make a note|save|store)(?: (?:this|for (?:next time|later|me"
    r"|the future)))?(?: that|:)"
    r"|(?:can|could) you (?:please|pls) (?:remember|keep in mind|memori[sz]e)"
    r"|i(?: want|'?d like| would like| need) you to (?:remember|keep in mind|know)(?: that|:)"
    r"|you (?:should|must|need to|have to) (?:remember|know|keep in mind) that",
    r"(?:kannst|könntest|würdest|magst) du (?:dir )?(?:bitte )?(?:\w+ ){0,2}(?:merken"
    r"|notieren)(?:,? dass|:)",
    r"(?:puedes|podrías|puede|podría) (?:por favor |porfa )?(?:recordar|anotar|apuntar"
    r"|tener en cuenta)(?: que|:)",
    r"(?:peux|pourrais|pouvez|pourriez)[- ](?:tu|vous) (?:\S+ ){0,3}(?:souvenir|retenir|noter"
    r"|mémoriser) ?(?:que|qu'\w+|:)"
    r"|tu (?:peux|pourrais) (?:\S+ ){0,2}(?:souvenir|retenir|noter|mémoriser) ?(?:que|qu'\w+|:)",
    r"(?:pode|podes|poderia|consegue) (?:por favor )?(?:se |te )?(?:lembrar|anotar"
    r"|memorizar)(?:-se|-te)?(?: de)?(?: que|:)",
    r"(?:puoi|potresti) (?:per favore )?(?:ricordar(?:e|ti)|annotar(?:e|ti)|segnar(?:e|ti)"
    r"|tenere (?:presente|a mente))(?: che|:)",
    r"(?:можешь|можете|мог(?:ла)? бы(?: ты| вы)?"
    r"|могли бы(?: вы)?),? (?:пожалуйста,? )?(?:это )?(?:запомнить|записать)(?:, что|:)",
    "(?:能不能|能否|可以|能|可不可以)(?:请你?)?(?:帮我)?(?:记住|记一下|记下)",
    "(?:を|ことを|って)?(?:覚えて|記憶して|メモして)(?:おいて)?(?:もらえ|くれ|いただけ)(?:ますか"
    "|ませんか|る)?",
    "(?:기억|메모)해 ?(?:주시겠어요|주시겠습니까|주실 수 있\\S*|줄 수 있\\S*|줄래요?)",
)
# Words of a memory that ask for none: a task, a question about what was, a person's own memory.
RECOLLECTION = Phrases(
    r"(?:should|must|shall|will|would|could|that|which|does|it|he|she) (?:\w+ )?remember(?:s|ed)?"
    r"|remember (?:to|when|how|why|who|what|where|which|if|correctly)|(?:don'?t|do not) forget to"
    r"|(?:i|you|we|they|can'?t|cannot|don'?t|do not|to|do you) (?:\w+ )?(?:remember|recall)(?:ed"
    r"|s)?"
    r"|i forgot|if i recall",
    r"erinnerst du|weißt du noch",
    r"te acuerdas|recuerdas|(?:no (?:te )?olvides|acuérdate) de \w+r",
    r"tu te (?:souviens|rappelles)|n'oublie pas d(?:e |')\w+",
    r"você (?:se )?lembra|lembra quando",
    r"ti ricordi|ricordi quando|non dimenticare di",
    r"(?:ты )?помнишь|помните|не забудь \w+ть",
    "你?还?记得.{0,20}(?:吗|什么|哪)|[我他她们]还?记得|不记得|记得(?:上|以前|之前|当时)|记得把"
    "|别忘了?(?:把|给)",
    "(?:覚えて|記憶して)い?(?:ます|る|た)",
    "기억(?:나|하니|하나요|하세요|해요|합니다|하고 있|이 안|에 없)",
)
# Asks not to remember: nothing of the message is saved or suggested.
DO_NOT_REMEMBER = Phrases(
    r"(?:don'?t|do not|never|no need to|needn'?t|not to|without|shouldn'?t|should not|mustn'?t"
    r"|must not|don'?t (?:have|need) to|do not (?:have|need) to) (?:\w+ )?(?:remember(?:ing)?"
    r"|memori[sz]\w+|(?:sav|stor|keep|not|record|writ)(?:e|ing)?(?: down)? (?:this|that|it"
    r"|any of (?:this"
    r"|it)|anything|any of that)(?: down)?)|nothing (?:to|worth) (?:remember|sav|not)\w*"
    r"|not (?:worth|something to) (?:remember|sav|not)\w*"
    r"|(?:no need|needn'?t|not|don'?t|never|without|rather (?:you )?(?:didn'?t|not)) (?:to )?"
    r"(?:mak(?:e|ing)|tak(?:e|ing)) (?:a )?notes?|(?:you|rather you) (?:did ?n'?t"
    r"|did not) (?:remember|save|store|note)"
    r"|(?:^|\S*[,;:-] ?|(?:please|just|actually|and|but|so|can|now) )forget (?:about )?(?:this|that"
    r"|it|what i (?:just )?said)|off the record|keep (?:this|that|it) out of (?:your |the )?memory",
    r"merke? dir (?:\w+ ){0,2}(?:nicht|nie|auf keinen fall)|nicht (?:zu )?(?:merken|speichern"
    r"|notieren)"
    r"|(?:brauchst|musst) (?:du )?(?:dir )?(?:das |es )?(?:dir )?nicht (?:zu )?(?:merken|notieren"
    r"|speichern)"
    r"|vergiss (?:das|es)(?: wieder)?[,.!]",
    r"no (?:lo |la |te lo )(?:recuerdes|guardes|memorices|anotes|apuntes)|no (?:recuerdes"
    r"|memorices)"
    r"|no (?:guardes|anotes|apuntes) (?:esto|eso|nada)|no (?:hace falta"
    r"|es necesario"
    r"|necesitas) (?:que lo )?(?:record|recuerd|anot|guard)\w*|olvídalo|olvida (?:esto|eso)",
    r"ne (?:le |la |te )?(?:retiens|mémorise|note|souviens|enregistre)\S* (?:\S+ )?pas"
    r"|ne l'(?:enregistre"
    r"|oublie) pas|pas (?:besoin|la peine|nécessaire) (?:de |d')(?:le |la |s'en |t'en )?(?:reten"
    r"|not"
    r"|mémoris|souven|enregistr)\w*|ne (?:pas )?(?:retenir|mémoriser|noter|enregistrer)"
    r"|oublie (?:ça|cela)",
    r"não (?:precisa |é preciso |te |se |o |a |vale a pena )*(?:lembr|memoriz)\w*"
    r"|não (?:precisa |é preciso |vale a pena )*(?:o |a )?(?:guard|anot|salv)\w*(?: isso| isto|$)"
    r"|(?:isso|isto) não é pr?a (?:anotar|guardar|lembrar|salvar)"
    r"|esqueça (?:isso|isto)",
    r"non (?:serve |c'è bisogno di |devi |lo |la |te lo )*(?:che (?:te )?(?:lo )?)?(?:ricord"
    r"|memorizz)\w*"
    r"|non (?:serve |c'è bisogno di |devi |lo |te lo )*(?:che (?:te )?(?:lo )?)?(?:salv|segn"
    r"|annot)\w*(?: questo| ciò|$)"
    r"|non (?:serve|c'è bisogno) che te lo (?:segni|annoti)"
    r"|dimentica(?:lo| questo)",
    r"не (?:надо |нужно |стоит |обязательно )*(?:запомина|запомни)\w*"
    r"|не (?:надо |нужно |стоит |обязательно )*(?:это )?(?:сохраняй|сохранять|записывай"
    r"|записывать)(?:те)? ?(?:это|этого|$)"
    r"|(?:запоминать|сохранять|записывать) (?:это |этого )?не (?:надо|нужно|стоит)|забудь (?:это"
    r"|об)",
    "(?:不要|别|不用|无需|不必|不需要|没必要)再?(?:记住|记下|记忆|记得|记这|记它|(?:记录"
    "|保存)(?:这|它|$|[，。,.！]))|不用记|忘(?:了|掉)(?:这"
    "|它)",
    "(?:覚え|記憶し|メモし)(?:ないで|なくて|る必要|ておかなくて)|(?:これ|それ)[はを]?(?:保存し"
    "|記録し)ないで|(?:保存し|記録し)なくて",
    "(?:기억|메모)(?:하지 ?(?:마|말|않)|할 ?필요|안 ?해)|^(?:(?:이건|이거|이것은?|그건|그거"
    "|이걸) ?)?(?:저장|기록)(?:하지 ?(?:마|말)"
    "|안 ?해)|(?:저장|기록)할 ?필요|잊어",
)
# Holds from now on, for the assistant or for the project; "always" and "never" where they open it.
LASTING = Phrases(
    r"^(?:(?:please|also|and|so|ok(?:ay)?|but|you (?:should|must)|\W),? ?)*(?:always|never)"
    r"|from now on|^going forward|, going forward|from here on|henceforth"
    r"|make sure in (?:the )?future|in (?:the )?future,? (?:please |pls )?(?:don'?t|do not|always"
    r"|never)"
    r"|^we (?:always|never)|^(?:please )?(?:whenever|every time|each time) you",
    r"^(?:in|for) (?:this|our|my) (?:repo|repository|codebase|project|monorepo|team"
    r"|company),? (?:we|you"
    r"|i|always|never|use|do|don'?t)",
    r"at the (?:start|end|beginning) of (?:each|every) (?:response|answer|reply|message|session)",
    r"without (?:asking|checking with|telling) me|(?:check with|ask|consult) me (?:first|before)",
    r"ab (?:jetzt|sofort|heute)|künftig|in zukunft|von nun an|ohne (?:mich zu fragen|rückfrage)"
    r"|frag mich (?:erst|vorher|immer)|^(?:bitte )?(?:immer|niemals|nie)|^in diesem (?:repo"
    r"|projekt)",
    r"a partir de ahora|de ahora en adelante|en adelante|^(?:por favor,? )?(?:siempre|nunca|jamás)"
    r"|^en este (?:repo"
    r"|proyecto|repositorio)|sin (?:preguntarme|consultarme)",
    r"désormais|dorénavant|à l'avenir|à partir de maintenant|^(?:toujours|ne \w+ jamais)"
    r"|sans me demander|^dans ce (?:dépôt|projet|repo)",
    r"a partir de agora|de agora em diante|^(?:por favor,? )?(?:sempre|nunca|jamais)"
    r"|^neste (?:repo|projeto"
    r"|repositório)|sem (?:me )?perguntar",
    r"d'ora in (?:poi|avanti)|da ora in (?:poi|avanti)|^(?:sempre|non \w+ mai)|^in questo (?:repo"
    r"|progetto)|senza (?:chiedermi|chiedere)",
    r"отныне|впредь|с этого момента|^(?:всегда|никогда)|без моего|^в этом (?:проекте|репозитории)",
    "以后|今后|从现在(?:起|开始)|从今|往后|^请?(?:总是|一律|永远|绝不)|(?:总是|永远).*(?:不要|请)"
    "|先问我|未经我|^在?这个(?:仓库|项目)",
    "今後|これから|^(?:毎回|必ず|いつも|常に|決して|絶対に)|(?:必ず|いつも|常に"
    "|絶対に).*(?:ください|こと)"
    "|^このリポジトリ|^このプロジェクト",
    "앞으로|이제부터|^(?:항상|언제나|반드시|절대|결코)|(?:항상|반드시|절대).*(?:줘|마|마세요"
    "|주세요)"
    "|^이 (?:저장소|프로젝트)",
)
# What the person is, knows or prefers.
PERSONAL = Phrases(
    r"i (?:really |much |strongly )?prefer|i'?d (?:rather|prefer)|i would prefer|i hate|i (?:dis"
    r"|don'?t )like (?:it )?when"
    r"|my name is|call me|i work (?:at|for|as)|^(?:i'?m|i am) an? \w+(?: \w+)?(?:[,.]|$| (?:and|at"
    r"|who"
    r"|with|working|by|investigating|in))|(?:i'?m|i am) (?:\w+ ){0,2}(?:new to|learning?"
    r"|familiar with"
    r"|unfamiliar|inexperienced|responsible for|in charge of)|i (?:don'?t|do not) know (?:much"
    r"|a lot"
    r"|anything) about|my first time|i'?ve [^.,;]{1,40} (?:for|since) [^.,;]{0,14}(?:years?|months"
    r"|decades?)"
    r"|coming from an? [^.,;]{1,20}background",
    r"ich bevorzuge|mir ist lieber|ich heiße|nenn mich|ich bin (?:neu|anfänger\w*|ein|eine|kein)"
    r"|ich arbeite (?:bei|als)|kenne mich (?:\w+ )?nicht",
    r"prefiero|me llamo|llámame|trabajo (?:en|como|para)|soy (?:nuev[oa]|una?|principiante)",
    r"je préfère|je m'appelle|appelle[- ]moi|je travaille (?:chez|comme)|je suis (?:nouveau"
    r"|nouvelle"
    r"|débutant\w*|une?)",
    r"prefiro|me chamo|meu nome é|trabalho (?:na|no|como|para)|sou (?:nov[oa]|uma?|iniciante)",
    r"preferi(?:sco|rei)|mi chiamo|chiamami|lavoro (?:in|come|per)|sono (?:nuov[oa]|una?"
    r"|principiante)",
    r"я предпочитаю|меня зовут|называй меня|обращайся ко мне|я работаю|я являюсь|я новичок"
    r"|плохо знаком",
    "我更?喜欢|我叫|叫我|我是(?:一|个|名)|我不太?(?:熟悉|会)|我习惯",
    "好みです|と呼んで|^私は\\S{1,12}です|初心者|慣れていない|のほうが好き",
    "선호|제 이름은|불러 ?주세요|^저는 \\S{1,10}(?:입니다|이에요|예요)|초보|익숙하지",
)
# An order not to do something; "don't" only with the reason behind it.
STOP = Phrases(
    r"^(?:\w+ )?(?:\w+ )?stop \w+ing|^(?:(?:please|and|also|again|so|no),? )*(?:don'?t|do not"
    r"|avoid)"
    r" \w+ [^,;.]{3,}[,;] (?:we|i|i'?m|it|they|last|because|since|the|that|this|there)"
    r"|you should(?:n'?t"
    r"| not) be \w+ing",
    r"hör auf|deja de|arrête d[e']|par[ea] de \w+r|smett(?:i|ila) di|перестань(?:те)?|хватит",
    "不要再|别再",
    "はやめて|しないようにして",
    "그만 ?해|지 ?말아",
)
# How work is agreed and where things are: facts that no file of the project says.
AGREED = Phrases(
    r"(?:is|are)(?: all)? (?:tracked|documented|managed) (?:in|on|at|by)"
    r"|is what \w+ (?:\w+ )?(?:watch"
    r"|use|read|look)\w*|the right (?:call|choice|decision)|good call|(?:code|merge|feature) freeze"
    r"|freeze (?:all|the)",
)
# "X now, not Y": the memory that says Y is out of date.
CHANGED = Phrases(
    r"correction|no longer|not [^,.]{1,30} any ?more|now[,;]? [^.]{0,40}(?:not|instead of)|(?:is"
    r"|are) now"
    r"|(?:moved|switched|changed|renamed) (?:from [^.]{1,30} )?to",
    r"korrektur|nicht mehr|(?:jetzt|nun) [^.]{0,40}(?:nicht|statt)",
    r"corrección|ya no|ahora [^.]{0,40}(?:no|en (?:vez|lugar) de)",
    r"correction|ne \w+ plus|(?:maintenant|désormais|dorénavant) [^.]{0,40}(?:pas|plus|au lieu)",
    r"correção|não \w+ mais|agora [^.]{0,40}(?:não|em vez)",
    r"correzione|non \w+ più|(?:ora|adesso) [^.]{0,40}(?:non|invece)",
    r"исправление|поправка|больше не|(?:теперь|сейчас) [^.]{0,40}(?:не|вместо)",
    "更正|纠正|不再|(?:现在|改)(?:是|为|成)",
    "訂正|ではなく|今は",
    "정정|아니라|이제는?",
)
# Stands before the old value in such a sentence; in Japanese and Korean behind it.
DENIED = Phrases(
    r"not|no longer|instead of|rather than|from",
    r"nicht(?: mehr)?|statt",
    r"ya no|en (?:vez|lugar) de|no",
    r"non plus|pas|plus|au lieu d[eu]",
    r"em vez de|não mais|não",
    r"invece (?:di|che)|non più|non",
    r"а не|больше не|вместо|не",
    "不再是?|而?不是",
)
DENIED_BEFORE = Phrases(
    "ではなく|じゃなくて|ではありません|じゃない", "(?:이|가)? ?아니(?:라|고)|말고"
)
# Sets something right that the assistant did or said.
CORRECTION = Phrases(
    r"^(?:no|nope)[,.!]|correction|actually|i meant|i (?:already )?(?:said|told you)|not what i"
    r"|incorrect|wrong|instead|rather than|(?:is|use|in|be|must|,) \S+(?: \S+){0,3}, not"
    r"|^(?:please )?(?:don'?t|do not|stop)|should(?:n't| not) have",
    r"^nein|sondern|stattdessen|anstatt|falsch|ich meinte|^bitte nicht",
    r"en (?:vez|lugar) de|sino|me refería|incorrecto",
    r"^non,|au lieu|plutôt|je voulais dire|c'est faux",
    r"em vez de|na verdade|eu quis dizer|errado",
    r"invece|anziché|in realtà|intendevo|sbagliato",
    r"вместо|а не|на самом деле|неправильно|я имел в виду",
    "不对|错了|说过|我说的是|应该(?:是|用)|而不是|不是",
    "ではなく|違います|間違|実は",
    "아니라|아니고|틀렸|사실은",
)
QUESTION = Phrases(
    r"^(?:what|why|how|where|who|which|(?:is|are|does|did|do|should|shall|can|could|would|will)"
    r" (?:i|you|we|they|he|she|it|this|that|there|the))",
    "吗|呢$|怎么|怎样|如何|什么|为什么|哪里|能不能|是不是",
    "ですか|ますか|でしょうか|かな$",
    "까요|나요|인가요|뭐|어떻게|왜 ",
)
# Guesses, what the product should do, and what a program prints: nothing that holds.
UNCERTAIN = Phrases(
    r"if|maybe|perhaps|might|could|wonder\w*|i (?:think|guess|believe|feel)|not sure|probably"
    r"|suppose"
    r"|would|should (?:i|we)|can (?:i|we|you)|errors?|fail(?:s|ed|ing|ure)?|broken|exception"
    r"|warnings?"
    r"|doesn'?t work|not working|never ?mind|yet|for now|this time|this once|seems?|looks? like"
    r"|the users?|(?:a|each|every"
    r"|the) (?:button|page"
    r"|screen|modal|table|column|row|field|icon|image|header|footer)s?",
    r"wenn|falls|vielleicht|könnte|ich glaube|fehler|geht nicht|immer noch|scheint",
    r"quizás|tal vez|podría|creo|error(?:es)?|no funciona|parece|sigue",
    r"peut-être|pourrait|je (?:pense|crois)|erreurs?|ne marche pas|semble|toujours pas",
    r"talvez|poderia|acho|erros?|não funciona",
    r"forse|potrebbe|penso|credo|error[ei]|sembra",
    r"если|может|наверное|думаю|кажется|ошибк\w*|не работает|похоже",
    "如果|可能|也许|我觉得|好像|报错|错误|失败|不行",
    "もし|かも|たぶん|と思い|エラー|失敗|みたい",
    "만약|아마|혹시|같아|오류|에러|실패",
)
# What code, git and the task at hand show: worth remembering only where something is surprising.
SHOWN_ELSEWHERE = Phrases(
    r"(?:src|lib|tests?|docs?|apps?|web|pkg|cmd|internal)/\w*|(?:folder|file|directory|project)"
    r" structure|\w+/\w+(?:[/.]\w+)+|\w+\.(?:py|js|jsx|ts|tsx|go|rs|java|kt|rb|c|h|cpp|cs|php"
    r"|swift|vue|css|html|sql|sh|toml|ya?ml|json|md)|(?:function|method|class|module|component"
    r"|variable"
    r"|parameter|struct|interface)(?:es|s)?|pattern|architecture|mvc|controllers?|commits?"
    r"|committed"
    r"|merged|rebased|pull request|prs?|#\d+|refactor\w*|(?:the )?fix (?:for|was|is)|fixed|crash"
    r"|stack ?trace|currently|right now|at the moment|this (?:week|morning|afternoon)(?:'s)?|today"
    r"|working on|in progress|to-?dos?",
    r"funktion|methode|klasse|muster|architektur|gerade|heute|diese woche|arbeite an|behoben",
    r"función|método|clase|patrón|arquitectura|ahora mismo|hoy|esta semana|trabajando en",
    r"fonction|méthode|classe|architecture|aujourd'hui|cette semaine|en ce moment|travaille sur",
    r"função|método|classe|padrão|arquitetura|agora mesmo|hoje|esta semana|trabalhando em",
    r"funzione|metodo|classe|architettura|oggi|questa settimana|lavorando a",
    r"функци\w*|метод|класс|архитектур\w*|сегодня|на этой неделе|работаю над|коммит\w*",
    "函数|方法|类名|架构|提交了|正在|做到第|进行到|今天|本周|目前|修复",
    "関数|メソッド|クラス|アーキテクチャ|今日|今週|作業中|修正した",
    "함수|메서드|클래스|아키텍처|오늘|이번 주|작업 ?중|수정했",
)
# Says what somebody has to do: such a memory is a rule.
OBLIGATION = Phrases(
    r"must|should|have to|has to|need to|needs to|don'?t|do not|shall",
    r"muss|müssen|soll(?:en|te)?|darf nicht",
    r"debe[ns]?|hay que",
    r"doit|doivent|il faut",
    r"deve[m]?|tem que",
    r"dev(?:e|ono)|bisogna",
    r"должен|должна|должны|нужно|надо|нельзя",
    "必须|应该|不要|不能",
    "べき|しなければ|ないで|してはいけ",
    "해야|하지 ?마|안 ?된",
)
FIRST_PERSON = Phrases(
    r"^(?:i|i'?m|i'?ve|my|ich|mein\w*|yo|mi|soy|je|j'\w+|mon|ma|mes|eu|meu|minha|sou|io|mio|mia"
    r"|sono"
    r"|я|мой|моя|моё|мои|меня)",
    "^我[^们]|^(?:私|僕|俺)|^(?:저는|제 |내 |나는)",
)
# A statement that begins so rests on what was said before it.
POINTS_BACK = Phrases(
    r"^(?:(?:that|dass|que|che|что) )?(?:(?:it|it's|they|he|she|thing|es|lo|это)|(?:this|that|these"
    r"|those|das|dies|dieses|esto|eso|ça|cela|ce|isso|isto|questo|quello) (?:is|are|was|were|will"
    r"|should|must|can|has|have|does|do|needs?|thing|one|way|ist|sind|war|soll|sollte|es|son|est"
    r"|sont"
    r"|é|são|è|sono))|(?:this|that|it|these|those) (?:should|must|will|shall|has to|needs to)",
    "^(?:这|那|它)|^(?:これ|それ|あれ)|^(?:이거|그거|이것|그것)",
)
# Words of such a statement that say nothing without it: "from now on always like this".
POINTERS = Phrases(
    r"so|like (?:this|that)|(?:do|it|this|that|way|our|approach|always|please|pls)",
    r"so|bitte|immer|das|unser|vorgehen|sollte|künftig",
    r"así|hazlo|haz|eso|esto|siempre|hagas|más|por favor",
    r"comme ça|comme cela|ça|cela|fais|toujours|refais|jamais|ne",
    r"assim|isso|isto|faz|faça|faças|mais|sempre",
    r"così|questo|fai|farlo|fare|sempre|più|mai|non",
    r"так|это|этого|делай|делайте|всегда|больше|никогда|не",
    "这样|那样|这么|都|就|做|请|一直",
    "この|その|ように|いつも|そう|して|ください|必ず|これ",
    "이렇게|그렇게|항상|계속|해 ?줘|해요?|언제나",
)
# Orders a task on a text, which then follows and is not the person's.
TASK_ON_TEXT = Phrases(
    r"(?:translat|shorten|proof-?read|summari[sz]|rewrit|rephras|paraphras|review|explain|improv"
    r"|correct|edit|reword|condens|simplif|format|comment on|polish"
    r"|analy[sz])\w*(?: [^\n:.!?]{0,40})?"
    r" (?:this|these|that|it|following|below|texts?|e-?mails?|letter|article|paragraph|passage"
    r"|message"
    r"|notes?|document|post|draft|review|announcement|rules)|tl;?dr|what does (?:this|it|that) mean"
    r"|make (?:this|it) (?:shorter|nicer|better|sound)"
    r"|(?:translat|proof-?read|summari[sz]|rephras|paraphras)\w*(?: [^\n:]{0,30})?[:\n]|(?:fix"
    r"|correct|check) (?:the |my )?"
    r"(?:grammar|spelling|typos?|wording|english)|what do you think of|turn (?:this|it) into"
    r"|(?:this|these|my|the following) (?:\w+ )?(?:e-?mail|mail|text|letter|paragraph|message|draft"
    r"|post|announcement|article|newsletter)",
    r"dies(?:e|er|en|es|em) (?:text|mail|brief|absatz|nachricht|artikel)",
    r"este (?:texto|correo|mensaje|párrafo|artículo)|esta (?:carta|nota)",
    r"ce (?:texte|mail|message|paragraphe|courriel)|cet article|cette lettre",
    r"(?:este|esse) (?:texto|e-?mail|parágrafo|artigo)|(?:esta|essa) mensagem",
    r"questo (?:testo|messaggio|paragrafo|articolo)|questa (?:e-?mail|lettera)",
    r"(?:этот|это) (?:текст|письмо|сообщение|абзац)",
    "(?:这段|这封|这篇|下面这)(?:文字|话|邮件|文章|英文|文案|句)?",
    "この(?:文|文章|メール|英文|段落)",
    "(?:이|다음|아래) (?:글|문장|메일|단락|문단)",
    r"(?:übersetz|kürz|korrigier|fasse?|prüf|erklär|überarbeit|formulier"
    r"|verbesser)\w*(?: [^\n:.!?]{0,40})?"
    r" (?:dies\w*|das|folgend\w*|text\w*|mail|brief|artikel|absatz|nachricht)"
    r"|(?:den|diesen) text (?:\w+ )?(?:übersetzen|kürzen|korrigieren|prüfen|überarbeiten"
    r"|verbessern)"
    r"|fasse? (?:\w+ )?zusammen|übersetz\w*(?: [^\n:]{0,30})?[:\n]",
    r"(?:trad[uú]c|acort|corr[ií]g|res[uú]m|revis|expl[ií]c|reescrib|mejor)\w*(?: [^\n:.!?]{0,40})?"
    r" (?:est[eo]|eso|siguiente|textos?|correo|carta|artículo|párrafo|mensaje)"
    r"|(?:traduce|resume|corrige|acorta)(?: [^\n:]{0,30})?[:\n]|mejora la redacción",
    r"(?:tradui|raccourci|corrig|résum|reli|expliqu|reformul|améliore"
    r"|réécri)\w*(?: [^\n:.!?]{0,40})?"
    r" (?:ceci|cela|ce|cette|suivant\w*|textes?|courriel|mail|lettre|article|paragraphe|message)"
    r"|(?:traduis|résume|corrige|raccourcis)(?: [^\n:]{0,30})?[:\n]|corriger? les fautes",
    r"(?:traduz|encurt|corri[jg]|resum|revis|expli[cq]|reescrev|melhor)\w*(?: [^\n:.!?]{0,40})?"
    r" (?:ist[oe]|este|seguinte|textos?|e-?mail|carta|artigo|parágrafo|mensagem)"
    r"|(?:traduz|resum[ae]|corrij[ae]|corrige|encurta)(?: [^\n:]{0,30})?[:\n]|(?:resum|traduz"
    r"|revis|corri[jg])\w* iss[oe]",
    r"(?:tradu[cr]|accorci|corregg|riassum|rived|spieg|riscriv|miglior)\w*(?: [^\n:.!?]{0,40})?"
    r" (?:quest[oa]|seguente|test[oi]|e-?mail|lettera|articolo|paragrafo|messaggio)"
    r"|(?:traduci|riassumi|correggi|accorcia)(?: [^\n:]{0,30})?[:\n]",
    r"(?:перевед|отредактируй|сократи|исправь|перескаж|проверь|объясни|перепиш"
    r"|улучши)\w*(?: [^\n:.!?]{0,40})?"
    r" (?:эт\w+|следующ\w+|текст\w*|письмо|статью|абзац|сообщение)"
    r"|(?:переведи|сократи|исправь|перескажи)(?:те)?(?: [^\n:]{0,30})?[:\n]",
    "把这.{0,8}(?:翻|译|改)|(?:翻译|缩短|校对|总结|概括|润色|改写|解释|审阅|精简).{0,12}(?:这"
    "|以下|下面|文|句|段|：|:)",
    "(?:これ|この|次|以下|文|下記).{0,16}(?:翻訳|要約|校正|添削|説明して|短く|書き直|直して"
    "|訳して)",
    "(?:이|다음|아래|글|문).{0,16}(?:번역|요약|교정|줄여|설명해|다듬|검토해|고쳐)|(?:번역|요약"
    "|교정)해 ?(?:줘|주세요) ?[:\\n]",
)
