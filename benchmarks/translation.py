"""Speed and memory of the NLLB translators: `python benchmarks/translation.py` (wants the extra `translate`).

One random checkpoint of 60 million parameters, shaped like NLLB, and sentences of 3 to 60 words, no two of them equal.
A random model hardly ever ends a sentence, so every way decodes the same number of tokens a sentence; nor is what it
says a translation, so none is judged or sampled again. Each way gets a warm model and two threads; conversion and
loading are not timed. Compared are two plain ways with `model.generate`, one sentence at
a time and in batches in the given order, with ours through transformers and through CTranslate2 in eight bits. Goals
over one at a time: 5 times and 10 times.

Memory: what the process grows by in translating 10,000 and 100,000 distinct sentences with a tiny checkpoint, each in a
process of its own, beyond its sentences and translations. Goal: at most 100 MB more for ten times as many.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SENTENCES, MAX_TOKENS, BATCH = 96, 32, 32
THREADS = 2
GOALS = {"ours, transformers": 5.0, "ours, CTranslate2 int8": 10.0}
NUMBERS, MEGABYTES = (10_000, 100_000), 100.0
LARGE = {"d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}
TINY = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
ROOT = Path(__file__).resolve().parents[1]


def sentences(n: int, seed: int, most_words: int = 60) -> list[str]:
    """Distinct sentences of made-up words, their lengths as uneven as those of answers."""
    rng = random.Random(seed)
    syllables = [c + v for c in "bcdfghjklmnprstvz" for v in ("a", "e", "i", "o", "u", "an", "er", "is", "on")]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(20_000)]
    found: dict[str, None] = {}
    while len(found) < n:
        length = min(most_words, max(3, round(rng.lognormvariate(2.6, 0.6))))
        found[" ".join(rng.choices(words, k=length)).capitalize() + "."] = None
    return list(found)


def save_checkpoint(folder: Path, sizes: dict[str, int], vocabulary: int) -> None:
    import sentencepiece
    import torch
    import transformers
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(20_000, seed=1)),
        model_prefix=str(folder / "sentencepiece.bpe"),
        model_type="bpe",
        vocab_size=vocabulary,
        minloglevel=2,
    )
    tokenizer = transformers.NllbTokenizer.from_pretrained(folder, extra_special_tokens=FAIRSEQ_LANGUAGE_CODES)
    (folder / "sentencepiece.bpe.model").unlink()
    torch.manual_seed(0)
    heads = {"encoder_attention_heads": 8, "decoder_attention_heads": 8}
    model = transformers.M2M100ForConditionalGeneration(
        transformers.M2M100Config(vocab_size=len(tokenizer), max_position_embeddings=1024, **heads, **sizes)
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def plain(folder: Path, batch: int):
    """`model.generate` on the sentences as they come."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, src_lang="spa_Latn")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    english = tokenizer.convert_tokens_to_ids("eng_Latn")

    def translate(texts: list[str]) -> list[str]:
        found = []
        for start in range(0, len(texts), batch):
            inputs = tokenizer(texts[start : start + batch], return_tensors="pt", padding=True)
            with torch.no_grad():
                out = model.generate(
                    **inputs, forced_bos_token_id=english, max_new_tokens=MAX_TOKENS, num_beams=1, do_sample=False
                )
            found += tokenizer.batch_decode(out, skip_special_tokens=True)
        return found

    return translate


def ours(folder: Path, quantization: str | None):
    from xlc_utils.registry import languages
    from xlc_utils.registry.hub import Weights
    from xlc_utils.translation.nllb import NllbTranslator
    from xlc_utils.translation.nllb_ctranslate2 import CTranslate2Translator

    known, more = languages.load(ROOT), {"max_tokens": MAX_TOKENS}
    if quantization is None:
        translator = NllbTranslator("random", Weights(str(folder), None), known, **more)
    else:
        translator = CTranslate2Translator(
            "random", Weights(str(folder), None), known, quantization=quantization, **more
        )
    return lambda texts: [t.text for t in translator.translate(texts, "es", "en")]


def speed() -> bool:
    import torch
    import transformers

    from xlc_utils.translation import degeneration

    degeneration.problem = lambda *_: None
    torch.set_num_threads(THREADS)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    texts = sentences(SENTENCES, seed=2)
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["XDG_CACHE_HOME"] = temporary
        folder = Path(temporary) / "checkpoint"
        folder.mkdir()
        save_checkpoint(folder, LARGE, 32_000)
        ways = {
            "one at a time": plain(folder, 1),
            f"batches of {BATCH} as given": plain(folder, BATCH),
            "ours, transformers": ours(folder, None),
            "ours, CTranslate2 int8": ours(folder, "int8"),
        }
        seconds = {}
        for name, translate in ways.items():
            translate(texts[:2])
            start = time.perf_counter()
            assert len(translate(texts)) == len(texts)
            seconds[name] = time.perf_counter() - start
            print(f"{name}: {seconds[name]:.1f} s", flush=True)
    words = sorted(len(t.split()) for t in texts)
    print(
        f"{len(texts)} sentences, none twice, of {words[0]} to {words[-1]} words (median {words[len(words) // 2]});",
        end=" ",
    )
    print(f"{MAX_TOKENS} tokens decoded for each; {THREADS} threads")
    one = seconds["one at a time"]
    for name, taken in seconds.items():
        goal = f"  goal {GOALS[name]:.0f}" if name in GOALS else ""
        print(f"{name:28} {len(texts) / taken:7.1f} sentences/s  {one / taken:6.1f} times{goal}")
    return all(one / seconds[name] >= goal for name, goal in GOALS.items())


def grown(n: int, folder: Path) -> None:
    """Prints by how many MB this process grows at most, and how many MB the translations take."""
    import psutil
    import torch

    from xlc_utils.registry import languages
    from xlc_utils.registry.hub import Weights
    from xlc_utils.translation import degeneration
    from xlc_utils.translation.nllb import NllbTranslator

    degeneration.problem = lambda *_: None
    torch.set_num_threads(1)
    translator = NllbTranslator("tiny", Weights(str(folder), None), languages.load(ROOT), max_tokens=8)
    texts = sentences(n, seed=3, most_words=20)
    translator.translate(texts[:2000], "es", "en")
    before, peak = psutil.Process().memory_info().rss, 0

    def look(done: int, total: int) -> None:
        nonlocal peak
        peak = max(peak, psutil.Process().memory_info().rss)

    translator._progress = look
    found = translator.translate(texts, "es", "en")
    size = sum(sys.getsizeof(t) + sys.getsizeof(t.text) + sys.getsizeof(t.__dict__) for t in found)
    print(max(0, peak - before) / 2**20, size / 2**20)


def memory() -> bool:
    beyond = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        save_checkpoint(folder, TINY, 2_000)
        for n in NUMBERS:
            command = [sys.executable, __file__, "--grown", str(n), temporary]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peak, size = map(float, done.stdout.split()[-2:])
            beyond[n] = peak - size
            print(f"{n:7,} sentences: grown by {peak:5.0f} MB, of which translations {size:4.0f} MB")
    more = beyond[NUMBERS[1]] - beyond[NUMBERS[0]]
    print(f"beyond the translations {more:.0f} MB more for ten times as many (goal: at most {MEGABYTES:.0f})")
    return more <= MEGABYTES


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["speed", "memory"])
    parser.add_argument("--grown", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    if arguments.grown:
        grown(int(arguments.grown[0]), Path(arguments.grown[1]))
        return
    tasks = {"speed": speed, "memory": memory}
    kept = [task() for name, task in tasks.items() if arguments.only in (None, name)]
    print("goals kept" if all(kept) else "goals MISSED")
    raise SystemExit(not all(kept))


if __name__ == "__main__":
    main()
