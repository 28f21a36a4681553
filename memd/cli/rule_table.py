"""The table of `memctl rules …`: rules that ask a person, or refuse, before a tool runs."""

from memd.cli.grammar import MEMORIES, Command, Operand, Option

COMMANDS = (
    Command(
        ("rule", "add"),
        "switch a rule on",
        "Before an assistant runs a tool its hook asks memd (memctl setup CLIENT --rules), and a "
        "call that the memory's line check: fits is asked about, or refused, with the memory's "
        "name and description. A check is TOOL /pattern/ or the words that a command begins with; "
        "docs/rules.md has the grammar. The rule holds as long as check, name and description "
        "stay as they are now. It is a reminder with teeth, not a sandbox.",
        "rules:add",
        operands=(
            Operand("MEMORY", "the memory, of the type feedback", param="path", listed=MEMORIES),
        ),
        options=(
            Option("--check", "what to check, written into the memory; its own line unless given",
                   "TEXT"),
            Option("--answer", "what a call gets; ask unless given", choices=("ask", "deny")),
        ),
        examples=(
            ("memctl rule add no-force.md --check 'git push --force'", "ask me before that"),
            ("memctl rule add env-files.md --check 'Write /\\.env$/' --answer deny", "never"),
        ),
    ),
    Command(
        ("rule", "list"),
        "show the rules of this project",
        "Each with whether it holds, and how often it answered. Below, memories that could be "
        "rules, with the command that switches them on: those with a line check:, and those that "
        "you had to say again and that quote a command.",
        "rules:list_",
    ),
    Command(
        ("rule", "test"),
        "say what a tool's call would get",
        "Nothing runs and nothing is counted. The status is 1 where the call would be asked about "
        "or refused.",
        "rules:test",
        operands=(
            Operand("INPUT", "a command, a path, an address, or the tool's input as JSON"),
        ),
        options=(Option("--tool", "the tool, by the client's name; Bash unless given", "TOOL"),),
        examples=(("memctl rule test 'cd app && git push --force'", "try a command"),),
    ),
    Command(
        ("rule", "off"),
        "switch a rule off",
        "The line stays in its memory; memctl rule add switches it on again.",
        "rules:off",
        operands=(Operand("RULE", "the id that memctl rule list shows"),),
        examples=(("memctl rule off r3", "switch one off"),),
    ),
)  # fmt: skip
