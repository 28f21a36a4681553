"""Tell which sentences announce that a text of somebody else follows, in ten languages. Pure.

"Here is what the page says:" and "Found this on a blog." come before pasted text that has no other
sign. A word too many here asks the person once more; a word too few lets a planted order through.
"""

import re

from memd.extract.markers import has_any, markers

# With one of these before the announcing words a sentence asks for something itself.
_ASKS = frozenset({"remember", "always", "never", "future", "consent"})
_QUOTED = re.compile("\ufffc{18,}\\W*$")  # what is announced stands in quotation marks behind it
_SOURCE = (
    r"(?:web ?|home)?(?:pages?|sites?)|blog\w*|articles?|read-?me(?:\.\w+)?|docs?|documentation"
    r"|documents?|manuals?|wiki\w*|issues?|tickets?|e?-?mails?|letters?|posts?|threads?|answers?"
    r"|stack ?overflow|stack ?exchange|reddit|forums?|transcripts?|output|guides?"
    r"|tutorials?|advice|vendors?|repl(?:y|ies)|responses?|change-?logs?"
    r"|release notes|prompts?|papers?|pdfs?|newsletters?|tweets?|gists?|hand-?books?"
)
_SAYS = (
    r"(?:says?|said|wrote|writes?|reads?|states?|stated|recommends?|suggests?|tells?|told|claims?"
)
_SAYS += r"|sent|posted|answered|replied|commented|explains?)"
# Whom it was told, when and by which way: what may stand between "Tom wrote" and the text.
_CIRCUMSTANCE = (
    r"(?:\s+(?:me|us|back|this|that|these|it|here|to|all|everyone|the|team|following|in|on|by|via"
    r"|his|her|their|our|a|an|e?-?mail|slack|teams|chat|channel|ticket|thread|letter|morning"
    r"|afternoon|evening|just|now|earlier|last|night|week|\w+day))"  # \w+day: today, Friday
)
_NO_SELF = r"(?<!\bi )(?<!\bwe )(?<!\byou )(?<!\bi've )(?<!\bi just )"
# The project itself is no source of others' texts.
_OWN_PLACE = (
    r"(?! (?:(?:the|our|my|this|a|old|new) ){0,2}"
    r"(?:code\w*|repo\w*|main|master|branch|linter|tests?|ci|logs?|project|file)\b)"
)
_HERE = r"(?:here(?:'s| is| are| comes?)|this (?:is|was|came)|these are"
_HERE += r"|below (?:is|are)|following (?:is|are))"
_COLON = r"[:\uff1a](?=\s|$)"
# Wherever they stand in a sentence.
_ANYWHERE = re.compile(
    r"\b(?:found|got|copied|pasted|took|saw|grabbed|received|came across|stumbled (?:up)?on)"
    r" (?:this|these|the following)"
    r"(?: (?:text|page|article|answers?|advice|snippet|e?-?mail|message|tips?|guide|note|post|reply"
    r"|comment))? (?:from|on|in|at|by|off|via|over)\b"
    rf"{_OWN_PLACE}"
    r"|\bi(?:'ll| will|'m| am)? quot(?:e|ing)\b|\bquot(?:e|ing) (?:him|her|them)\b"
    r"|\bin (?:his|her|their) (?:own |exact )?words\b"
    rf"|\b{_NO_SELF}(?:wrote|writes|posted|e?-?mailed|messaged|replied|commented|texted)\b"
    rf"(?:(?P<wrote>{_CIRCUMSTANCE}*\s*\.?$)|{_CIRCUMSTANCE}*{_COLON})"
    rf"|\b{_NO_SELF}(?:said|says|told (?:me|us))\b"
    rf"(?:(?P<said>{_CIRCUMSTANCE}+\s*\.?$)|{_CIRCUMSTANCE}*{_COLON})"
    rf"|\b(?:{_SOURCE})\b[^:]{{0,40}}\b{_SAYS}\b[^:]{{0,30}}{_COLON}"
    rf"|\b{_HERE}\b(?:(?!\b(?:for|want|wanted|need|expect|prefer|like)\b)[^:]){{0,80}}"
    rf"\b(?:{_SOURCE})\b[^:]{{0,60}}{_COLON}"
    rf"|\b(?:from|according to|source|via)\b[^:]{{0,40}}\b(?:{_SOURCE})\b[^:]{{0,30}}{_COLON}"
    # German, Spanish, French, Portuguese, Italian, Russian
    r"|\b(?:das|dies|folgendes|den text) (?:habe? ich|steht|stand|kommt)\b[^:]{0,40}"
    r"\b(?:gefunden|kopiert|auf|aus|im|in|von|bei)\b"
    r"|\b(?:hier|auf|laut|im|in)\b[^:]{0,50}\b(?:steht|schreibt|gefunden|heißt es)\b[^:]{0,30}"
    rf"{_COLON}"
    r"|\b(?:schrieb|schreibt|sagt|sagte)(?: mir| uns| heute| gestern| dazu| folgendes| im chat)*"
    rf"(?:\s*\.?$|{_COLON})"
    r"|\b(?:encontré|copié|vi) esto (?:en|de)\b"
    rf"|\b(?:la|el|un) \w+[^:]{{0,40}}\b(?:dice|escribió|dijo)\b[^:]{{0,30}}{_COLON}"
    r"|\bj'ai (?:trouvé|copié|vu|lu) (?:ça|ceci|cela) (?:sur|dans)\b"
    rf"|\b(?:dit|écrit|indique)\b[^:]{{0,30}}{_COLON}"
    r"|\b(?:encontrei|copiei|vi) isto? (?:em|no|na|de)\b"
    rf"|\b(?:diz|escreveu|disse)\b[^:]{{0,30}}{_COLON}"
    r"|\bho (?:trovato|copiato|letto) (?:questo|ciò) (?:su|in|nel|nella|sul|sulla)\b"
    rf"|\b(?:dice|scrive|ha scritto|ha detto)\b[^:]{{0,30}}{_COLON}"
    r"|\b(?:нашёл|нашел|нашла|скопировал[аи]?|увидел[аи]?) (?:вот )?(?:это|такое)"
    r" (?:на|в|\u0443|из)\b"
    rf"|\b(?:пишет|написал[аи]?|написано|говорит|сказал[аи]?)\b[^:]{{0,30}}{_COLON}"
    # Chinese, Japanese, Korean
    r"|(?:网页|页面|网站|文章|博客|文档|邮件|帖子|README)[^。:\uff1a]{0,12}(?:说|写|内容)[^。:\uff1a]{0,6}[:\uff1a]"
    r"|我?(?:在|从)[^。:\uff1a\uff0c]{1,20}(?:看到|找到|复制)(?:的|了)?(?:这|以下)"
    r"|(?:ページ|サイト|記事|ブログ|メール|ドキュメント|README)[^。:\uff1a]{0,12}(?:書|言|内容)[^。:\uff1a]{0,8}[:\uff1a]"
    r"|(?:페이지|사이트|블로그|문서|메일|글|README)[^.:\uff1a]{0,12}(?:써|적혀|내용|말)[^.:\uff1a]{0,8}[:\uff1a]",
    re.IGNORECASE,
)
# At the end of a paragraph: what follows is the text.
_LAST = re.compile(
    r"\b(?:read|review|summari[sz]e|translate|explain|proof-?read|analy[sz]e|reply to"
    r"|what do you think (?:of|about))"
    rf" (?:me )?(?:this|these|the following)(?: \w+){{0,2}}? (?:{_SOURCE}|text|message|note)\b"
    rf"|\bdo(?:es)? (?:this|these) (?:{_SOURCE}|text|message)\b[^:]{{0,20}}\bmake sense\b"
    rf"|\b(?:this|the) (?:{_SOURCE}|text|message)(?: \w+){{0,2}}? (?:below|that follows)\b"
    rf"|\b{_HERE} what (?!i\b|we\b|you\b)[^:]{{1,60}}\b{_SAYS}\b[^:]{{0,30}}$"
    r"|\b(?:lies|übersetze|erkläre) (?:mir )?(?:diese[ns]?|folgende[ns]?) \w+"
    r"|\b(?:lee|resume|traduce) (?:este|esta|el siguiente) \w+"
    r"|\b(?:lis|résume|traduis) (?:ce|cet|cette|le texte) \w+"
    r"|\b(?:leia|resuma|traduza) (?:este|esta|o seguinte) \w+"
    r"|\b(?:leggi|riassumi|traduci) (?:questo|questa|il seguente) \w+"
    r"|\b(?:прочитай|прочти|переведи|перескажи) (?:этот|эту|это|следующ\w+) \w+"
    r"|(?:阅读|读一下|看一下|总结|翻译)(?:一下)?(?:这|以下|下面)|(?:この|次の|以下の)[^。]{1,12}を?(?:読んで|要約|翻訳)"
    r"|(?:이|다음) [^.]{1,12}(?:읽고|읽어|요약|번역)",
    re.IGNORECASE,
)


def announces(masked: str, *, ends_paragraph: bool) -> bool:
    """Return whether what follows a sentence, or stands in it, is announced as another's text.

    In ``masked`` code and quotations are blanked out. A sentence whose quotation is the text
    announces nothing more.
    """
    plain = masked.replace("\u2019", "'")
    match = _ANYWHERE.search(plain) or (_LAST.search(plain) if ends_paragraph else None)
    if match is None or _QUOTED.search(plain):
        return False
    # "Fix what Tom wrote." is an order about his text, which does not follow.
    if match.lastgroup in ("wrote", "said") and "starts:order" in markers(plain):
        return False
    return not has_any(plain[: match.end()], _ASKS)
