"""Texts of the tree of ``fixture_tree.py``: includes, comments, conditions and heads of rules."""

INNER = {
    # How a file is named in a text, with the file that is meant.
    "dot.md": "@./inc/dot.md",
    "plain.md": "@inc/plain.md",
    "absolute.md": "@{base}/forms/app/inc/absolute.md",
    "a space.md": r"@inc/a\ space.md",
    "mid.md": "in the middle @inc/mid.md of a line",
    "tab.md": "behind a tab\t@inc/tab.md",
    "no-break.md": "behind\u00a0@inc/no-break.md",
    "wide.md": "behind\u3000@inc/wide.md",
    "list.md": "- @inc/list.md",
    "inner-list.md": "- a\n  - @inc/inner-list.md",
    "bold.md": "**@inc/bold.md**",
    "star.md": "*@inc/star.md*",
    "quote.md": "> @inc/quote.md",
    "table.md": "| a | b |\n|---|---|\n| x | @inc/table.md |",
    "heading.md": "# @inc/heading.md",
    "underlined.md": "@inc/underlined.md\n=====",
    "fragment.md": "@inc/fragment.md#part",
    "ünï.md": "@inc/ünï.md",
    "linked.md": "[@inc/linked.md](there)",
    "tagged.md": "a <b>@inc/tagged.md</b> c",
    "spaced-tag.md": "a <b> @inc/spaced-tag.md </b> c",
    "between-spans.md": "`a` @inc/between-spans.md `b`",
    "one-tick.md": "a ` @inc/one-tick.md",
    "two-a.md": "@inc/two-a.md @inc/two-b.md",
    "two-b.md": "",
    "up-and-down.md": "@inc/../inc/up-and-down.md",
    "UPPER.MD": "@inc/UPPER.MD",
    "percent%20.md": "@inc/percent%20.md",
    "nothing": "@inc/nothing",
    "1st.md": "@./inc/1st.md",
    "data.json": "@inc/data.json",
    "unix.sh": "@inc/unix.sh",
    ".hidden.md": "@inc/.hidden.md",
    "broken-line.md": "a line\\\n@inc/broken-line.md",
    "after-comment.md": "<!-- a comment --> @inc/after-comment.md",
    "sub/relative.md": "@inc/sub/relative.md",
    "link.txt": "@inc/link.md",
    "crlf.md": "@inc/crlf.md",
    "bom.md": "@inc/bom.md",
    "latin.md": "@inc/latin.md",
    "white.md": "@inc/white.md",
    "a-in-code-of-a-list.md": "- code `in an item @inc/a-in-code-of-a-list.md here`",
    # None of these is one.
    "paren.md": "(@inc/paren.md)",
    "stop.md": "@inc/stop.md.",
    "comma.md": "@inc/comma.md, and",
    "span.md": "code `@inc/span.md` and `x @inc/span.md y`",
    "two-ticks.md": "``a ` @inc/two-ticks.md``",
    "fence.md": "```\n@inc/fence.md\n```",
    "tilde.md": "~~~\n@inc/tilde.md\n~~~",
    "fence-in-list.md": "- x\n  ```\n  @inc/fence-in-list.md\n  ```",
    "indented.md": "para\n\n    @inc/indented.md\n\nend",
    "comment.md": "<!-- @inc/comment.md -->",
    "inner-comment.md": "text <!-- @inc/inner-comment.md --> text",
    "quoted.md": '@"inc/quoted.md"',
    "angle.md": "<@inc/angle.md>",
    "target.md": "[a](@inc/target.md)",
    "escaped.md": r"\@inc/escaped.md",
    "html.md": "<div>\n@inc/html.md\n</div>",
    "mail.md": "me@inc/mail.md",
    "double.md": "@@inc/double.md",
    "joined.md": "@inc/x.md,@inc/joined.md",
    "defined.md": "[r]: @inc/defined.md",
    "colon.md": "see:@inc/colon.md",
    "strike.md": "~~@inc/strike.md~~",
    "picture.png": "@inc/picture.png",
    "paper.pdf": "@inc/paper.pdf",
    "what.unknown": "@inc/what.unknown",
    "outside.md": "@inc/empty.md @inc/out.md @inc/absent.md @inc @~/notes/linked.md @../above.md",
}
COMMENTS = """\
§
<!-- MARK-comment-block -->
after MARK-comment-after

<!-- MARK-comment-two
MARK-comment-lines
-->

text <!-- MARK-comment-inline --> more

<!-- MARK-comment-head --> MARK-comment-tail

  <!-- MARK-comment-spaces -->

- item
  <!-- MARK-comment-item -->

> <!-- MARK-comment-quote -->

```
<!-- MARK-comment-fence -->
```

    <!-- MARK-comment-code -->

`<!-- MARK-comment-span -->`

<div>
<!-- MARK-comment-html -->
</div>

para
<!-- MARK-comment-para -->
para

<!-- MARK-comment-one --><!-- MARK-comment-other -->

<!-- MARK-comment-open
MARK-comment-last
"""
GLOBS = (
    "*.ts",
    "**/*.ts",
    "src/*.ts",
    "src/**",
    "src/**/*",
    "src",
    "src/",
    "/src",
    "./src/**",
    "src/*/b.ts",
    "src/**/b.ts",
    "SRC/**",
    "*.{ts,tsx}",
    "{a,src}/**",
    "src/[a-c].ts",
    "!src/**",
    "src/a.ts, docs/*.txt",
    "**",
    "**/*",
    "*",
    "*/a.ts",
    "../app/src/**",
    "app/src/**",
    "{base}/conditions/app/src/**",
    "src/a?ts",
    "**/src/**",
    "src/{a,b}.ts",
    "*.ts #c",
    "a.ts",
    "src/**.ts",
    "**.ts",
    "sr*",
    "**/s*/**",
    "src/@(a|b).ts",
    "a.t[s]",
    "{src/a.ts",
    "src/}",
    "[",
    "src/[a",
    "!*.txt",
    "*.ts,!src/a.ts",
)
HEADS = {
    "bare": "paths: **/*.ts",
    "list": "paths:\n  - src/*.ts\n  - x",
    "flat-list": "paths:\n- src/*.ts",
    "inline-list": "paths: [src/*.ts, 'b']",
    "bare-inline-list": "paths: [**/*.ts]",
    "bare-list": "paths:\n  - **/*.ts",
    "inner-list": "paths:\n  - - src/*.ts",
    "empty": "paths:",
    "empty-text": 'paths: ""',
    "empty-list": "paths: []",
    "number": "paths: 5",
    "map": "paths:\n  a: b",
    "null": "paths: null",
    "true": "paths: true",
    "mixed": "paths:\n  - 5\n  - src/*.ts",
    "twice": "paths: nope/*\npaths: src/*.ts",
    "tab": "paths:\tsrc/*.ts",
    "upper": "Paths: src/*.ts",
    "globs": "globs: src/*.ts",
    "broken-before": "x: [\npaths: src/*.ts",
    "brace": "paths: {a,src}/*.ts",
    "in-braces": "paths: {src/a.ts}",
    "comment": "paths: src/*.ts # c",
    "anchor": "paths: &a src/*.ts",
    "block": "paths: |\n  src/*.ts",
    "folded": "paths: >\n  src/*.ts",
    "inner": "meta:\n  paths: src/*.ts",
    "comma": "paths: docs/*, src/*.ts",
    "quoted-comma": 'paths: "docs/*, src/*.ts"',
    "exclamation": "paths: !x src/*.ts",
    "at": "paths: @src/*.ts",
    "colon-before": "description: a: b\npaths: src/*.ts",
    "indented": "  paths: src/*.ts",
}
WHOLE_RULES = {
    "no-end": "---\npaths: nope\n§\n",
    "late": "\n---\npaths: nope\n---\n§\n",
    "bom": "\ufeff---\npaths: src/*.ts\n---\n§\n",
    "dots": "---\npaths: nope\n...\n§\n",
    "spaces": "---  \npaths: src/*.ts\n---  \n§\n",
    "four": "----\npaths: nope\n----\n§\n",
    "end-in-line": "---\npaths: src/*.ts---\n§\n",
    "crlf": "---\r\npaths: src/*.ts\r\n---\r\n§\r\n",
    "no-head": "---\n---\n§\n",
    "toml": "+++\npaths='nope'\n+++\n§\n",
}
GEMINI_FORMS = """\
§
@./dot.md
in the middle @mid.md of a line
(@paren.md)
code `@span.md`
```
@fence.md
```
~~~
@tilde.md
~~~
    @indented.md
- @list.md
<!-- @comment.md --> <!-- MARK-gemini-comment -->
@stop.md.
@{base}/gemini/Apps/web/absolute.md
@~/notes/linked.md
@nothing
@picture.png
@a\\ space.md
@absent.md
@folder
@_under.md
@.hidden.md
@../above.md
@../../out.md
@ünï.md
behind\u00a0@no-break.md
a ` alone @tick.md
@crlf.md\r
@dot.md
@link.md
@out-link.md
@empty.md
@deep-1.md
@circle-a.md
MARK-gemini-end
"""

# Extensions of files that are included, the first those of texts.
EXTENSIONS = str.split(
    "adoc asciidoc astro bash bat c cc cfg cjs clj cljc cljs cmake cmd conf config cpp cs css "
    "csv cts cxx dart diff edn ejs elm env erb erl ex exs f f90 f95 fish for go gql gradle "
    "graphql h hbs hpp hrl hs htm html hxx ini jade java js json jsx kt kts latex less lhs "
    "lock log lua make makefile md mjs ml mli mts org patch php pl pm properties proto ps1 "
    "pug py pyi pyw r rake rb rs rst sass sbt scala scss sh sql svelte swift tex text toml ts "
    "tsx txt vue xml yaml yml zsh asm bak bazel bin cnf crt doc docx el exe fs gif gz ipynb "
    "jl jpg json5 jsonc jsonl key ksh lisp markdown mdc mdx mk ndjson nim nix pdf pem png "
    "psql s so sqlite svg tar tf tsv v vb xhtml xsl zig zip"
)
