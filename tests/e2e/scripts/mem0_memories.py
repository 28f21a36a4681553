"""Lets mem0 save some memories and prints them all: ``mem0_memories.py FOLDER URL``.

The folder gets mem0's own stores; at the URL somebody answers as OpenAI's embeddings do.
"""

import json
import sys

from mem0 import Memory  # type: ignore[import-not-found] # in a venv of its own

SAVED = (
    ("Ada prefers short answers with one example", {"type": "user"}),
    ("Cards have 26 rows, Grace agreed on it in March", {"category": "work"}),
    ("Likes tea", None),
)


def main() -> None:
    """Save the memories as they are, without asking a model, and print what ``get_all`` answers."""
    folder, url = sys.argv[1:]
    model = {"openai_base_url": url, "api_key": "dummy"}
    memory = Memory.from_config(
        {
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": f"{folder}/qdrant", "embedding_model_dims": 8},
            },
            "embedder": {"provider": "openai", "config": {**model, "embedding_dims": 8}},
            "llm": {"provider": "openai", "config": model},
            "history_db_path": f"{folder}/history.db",
        }
    )
    for text, metadata in SAVED:
        memory.add(text, user_id="ada", infer=False, metadata=metadata)
    print(json.dumps(memory.get_all(filters={"user_id": "ada"}, top_k=100)))  # noqa: T201


main()
