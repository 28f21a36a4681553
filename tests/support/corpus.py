"""Made-up memories in any number, as a long-lived project has them; always the same ones.

Words follow Zipf's law over a vocabulary of a few thousand: the commonest are English function
words, then words of software work, then words that nobody has ever seen, as names of services and
people are to a ranker. Memory number ``n`` is the same whatever the size of the corpus.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

from memd.projects.project import slug
from tests.support.daemon import Home

_SEED = 20_261_121
_RARE_WORDS = 5_000
_DAY = 86_400
_NEWEST = 1_790_000_000  # September 2026; files are older than this, as most memories are
_TYPES = ("user", "feedback", "project", "reference")
_FOLDERS = ("", "", "", "notes/", "decisions/", "services/", "people/", "notes/2026/")
_COMMON = (
    "the of and to in is that for it on with as are be this we by at from or an have not they "
    "was which when all can has if will our use but one should after before only then because "
    "do each new how where what who must never always more than into over out no so there any"
)
_WORK = (
    "database release review editor tracker pipeline budget design schema migration cluster queue "
    "cache index worker scheduler gateway proxy token session cookie certificate secret vault "
    "deploy rollback canary staging production sandbox container image registry volume network "
    "firewall balancer router handler controller service client server socket stream buffer thread "
    "process signal lock transaction replica shard partition backup restore snapshot archive log "
    "metric trace alert dashboard incident outage postmortem runbook oncall escalation ticket "
    "sprint milestone roadmap estimate deadline freeze branch merge rebase commit tag version "
    "changelog dependency package library framework plugin extension module function method class "
    "interface protocol contract endpoint payload header request response timeout retry backoff "
    "limit quota throttle permission role policy audit compliance privacy consent invoice payment "
    "refund subscription customer tenant account profile avatar locale translation currency tax "
    "report export import upload download parser lexer compiler linter formatter test fixture "
    "mock stub coverage benchmark latency throughput memory disk cpu kernel driver firmware sensor "
    "device mobile desktop browser tablet screen layout theme color font icon button menu dialog "
    "form field validation error warning notice banner search filter sort page cursor feed "
    "comment thread reaction mention notification email webhook event topic consumer producer "
    "ledger balance reconciliation settlement fraud risk score model training dataset feature "
    "embedding prompt evaluation experiment variant rollout flag toggle config template script "
    "macro shell terminal keyboard shortcut workflow approval owner team manager designer analyst"
)
_CHINESE = (
    "数据库 发布 评审 编辑器 流水线 预算 设计 迁移 集群 队列 缓存 "
    "索引 网关 代理 令牌 证书 部署 回滚 预发 生产 容器 镜像 网络 "
    "防火墙 服务 客户端 线程 事务 副本 备份 恢复 快照 日志 指标 告警 "
    "看板 事故 值班 工单 里程碑 截止 冻结 分支 合并 提交 版本 依赖 "
    "插件 接口 协议 超时 重试 限流 权限 审计 发票 支付 退款 客户 "
    "租户 翻译 货币 报表 导出 测试 覆盖率 基准 延迟 吞吐 内核 设备 "
    "浏览器 布局 主题 校验 搜索 排序 通知 邮件 事件 账本 对账 风控 "
    "模型 训练 实验 开关 配置 模板 脚本 审批 负责人 团队"
)
_SYLLABLES = "ba be bo da do el fa fi ga go ka ki lo lu ma mi na no pa pe ra ro sa se ta to va vi"
_SMALL_TALK = (
    "thanks, that looks good to me",
    "ok please go on",
    "run it again and show me the output",
    "rename this variable, it reads badly",
    "yes, and add a docstring",
    "fix the typo in line three",
    "好的，继续吧",
    "why does this loop end one step too early?",
)


@dataclass(frozen=True, slots=True)
class Memory:
    """One file: where it lies, what it says, and what a question about it could name."""

    path: str
    name: str
    description: str
    type: str
    body: str
    identifier: str
    date: str
    mtime: int

    @property
    def content(self) -> str:
        """The file as Claude Code writes it."""
        head = f"name: {self.name}\ndescription: {self.description}\ntype: {self.type}"
        return f"---\n{head}\n---\n\n{self.body}\n"


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt and the memory that it is about, "" when it is about none."""

    text: str
    path: str


def memory(number: int) -> Memory:
    """Return the memory of a number."""
    draw = Random(_SEED + number)  # noqa: S311 - the same on every run is the point
    day = draw.randrange(700)
    date = f"{2024 + day // 365}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
    chinese = draw.random() < 0.04
    topic, other = _topics(draw, 2)
    identifier = f"{topic}_{other}_{number:x}"
    if chinese:
        words = draw.choices(_CHINESE.split(), k=150)
        description = f"{''.join(words[:7])}的约定{date}"
        body = "。\n\n".join("".join(words[at : at + 18]) for at in range(7, 150, 18))
    else:
        words = _draw(draw, draw.randrange(90, 190))
        about = " ".join(_topics(draw, draw.randrange(4, 8)))
        description = f"{topic.capitalize()} {other} {about}"
        body = ". ".join(" ".join(words[at : at + 14]).capitalize() for at in range(0, 190, 14))
        body = body.replace(". ", ".\n\n", 2).strip(". ") + f".\nDecided on {date}."
    return Memory(
        path=f"{draw.choice(_FOLDERS)}{topic}-{other}-{number}.md",
        name=f"{topic}-{other}-{number}",
        description=description,
        type=draw.choice(_TYPES),
        body=f"{body}\n\nSee `{identifier}`.",
        identifier=identifier,
        date=date,
        mtime=_NEWEST - day * _DAY - draw.randrange(_DAY),
    )


def write(directory: str, size: int, first: int = 0) -> None:
    """Write memories ``first`` to ``first + size`` and an index of them into a directory."""
    lines = []
    for folder in set(_FOLDERS):
        os.makedirs(os.path.join(directory, folder), mode=0o700, exist_ok=True)
    for number in range(first, first + size):
        results = memory(number)
        put(f"{directory}/{results.path}", results.content)
        os.utime(f"{directory}/{results.path}", (results.mtime, results.mtime))
        lines.append(f"- [{results.name}]({results.path}) — {results.description[:80]}\n")
    put(f"{directory}/MEMORY.md", "".join(lines))


def folder(home: Home, cwd: str) -> str:
    """Return where the memories of a project lie."""
    return f"{home.path}/.claude/projects/{slug(cwd)}/memory"


def put(path: str, content: str) -> None:
    """Write a small file in place, as an editor without a backup does."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


def questions(size: int, count: int) -> Iterator[Question]:
    """Yield prompts about the first ``size`` memories: most hit one, one in seven hits none."""
    draw = Random(_SEED)  # noqa: S311 - see above
    for number in range(count):
        about = memory(draw.randrange(size))
        words = about.description.split()
        kind = number % 14
        if kind in {6, 13}:
            unknown = f"{_rare(draw)}zzq {_rare(draw)}xxj"
            text = draw.choice(_SMALL_TALK) if kind == 6 else f"what about {unknown}?"
            yield Question(text, "")
        elif kind in {2, 9}:
            yield Question(f"where is {about.identifier} set, and why?", about.path)
        elif kind == 4:
            yield Question(" ".join([*about.body.split()[:45], *words[:3]]), about.path)
        elif kind == 11:
            yield Question(f"what was decided on {about.date} about {words[0]}?", about.path)
        else:
            requested = words[0] if len(words) < 3 else " ".join(draw.sample(words, 3))
            yield Question(f"what did we say about {requested}?", about.path)


def _draw(draw: Random, count: int) -> list[str]:
    words, weights = _vocabulary()
    return draw.choices(words, cum_weights=weights, k=count)


def _topics(draw: Random, count: int) -> list[str]:
    """Return words that say something: the function words are left out."""
    words, weights = _vocabulary()
    start = len(_COMMON.split())
    base = weights[start - 1]
    shifted = _shifted(base, start)
    return draw.choices(words[start:], cum_weights=shifted, k=count)


@cache
def _shifted(base: float, start: int) -> list[float]:
    return [weight - base for weight in _vocabulary()[1][start:]]


@cache
def _vocabulary() -> tuple[list[str], list[float]]:
    draw = Random(_SEED)  # noqa: S311 - see above
    work = list(dict.fromkeys(_WORK.split()))
    draw.shuffle(work)
    words = [*_COMMON.split(), *work]
    rare = {_rare(draw): None for _ in range(_RARE_WORDS)}
    words += rare
    return words, list(accumulate(1 / (rank + 2) for rank in range(len(words))))


def _rare(draw: Random) -> str:
    return "".join(draw.choices(_SYLLABLES.split(), k=draw.randrange(2, 5)))
