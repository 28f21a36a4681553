"""Words that deny, bound, condition or doubt a sentence, in ten languages. Pure."""

DENIAL, DOUBT = "not", "perhaps"


def _set(text: str) -> frozenset[str]:
    """Return the words of a text with spaces between them."""
    return frozenset(text.split())


DENIALS = _set(
    "not no never none nor neither without cannot cant nicht kein keine keinen keiner keinem nie"
    " niemals ohne nunca jamás jamas sin ningún ninguna ne pas jamais sans aucun aucune não nao"
    " nenhum sem jamais non mai senza nessun nessuna не нет никогда без нельзя"
    " 不 没 沒 無 无"
    " 未 勿 非 莫 别 別 ない ません ず 안 않 못 없"
)
CJK_DENIALS = "[不没沒無无未勿莫别別안않못없]|ない|なく|ません|禁止"
_BOUNDS = _set(
    "only unless except until before after nur außer bis solo sólo salvo excepto hasta seulement"
    " sauf somente exceto soltanto tranne только кроме 只 除"
)
_CONDITIONS = _set(
    "if when whenever provided wenn falls sofern si cuando quand lorsque se quando если когда 若"
)
_DOUBTS = _set(
    "probably perhaps maybe possibly presumably likely might could will would plan plans planned"
    " planning intends proposed considering wahrscheinlich vielleicht vermutlich geplant"
    " probablemente quizás probablement provavelmente talvez probabilmente forse вероятно возможно"
)
LIMITS = {
    **dict.fromkeys(DENIALS, DENIAL),
    **{word: word for word in _BOUNDS},
    **dict.fromkeys(_CONDITIONS, "if"),
    **dict.fromkeys(_DOUBTS, DOUBT),
}
# Verbs and words that say that what follows is not to be.
AGAINST = _set(
    "dont cant wont doesnt isnt shouldnt mustnt stop avoid quit refrain hate dislike forbid"
    " forbidden wrong instead refuse mistake bad vermeide vermeiden hör falsch fehler schlecht"
    " statt verboten evita evitar deja odio error mala évite éviter arrête déteste interdit erreur"
    " mauvais mauvaise evite pare odeio proibido erro errado evitare smetti vietato errore"
    " sbagliato"
    " избегай перестань хватит вместо запрещено ошибка ошибкой неправильно плохо"
)
# Articles, prepositions and auxiliaries of the languages whose words are not stemmed here.
FUNCTION_WORDS = _set(
    "der die das den dem des ein eine ist sind herr frau el la los las un una es son le les est"
    " sont il lo gli sono o os as um uma é são è na no nas nos em di du de da do del al à a mr mrs"
    " на по в во"
)
MARKED = r"[?\uff1f](?=\s|$)|~~"
