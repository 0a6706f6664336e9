"""Calls a second and CPU a call: `python benchmarks/calls.py [--calls 1000] [--rounds 5]`.

A local endpoint, in a process of its own, answers after 50 ms. All clients ask it the same calls in turn, round by
round; shown are medians. Ours runs as in a notebook: recorded before use, read and checked, with progress. The others
only fetch. litellm and lm-eval take part where they are installed (a scratch environment; this project needs neither).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from xlc_utils.chat.base import Chat, Sampling
from xlc_utils.chat.openai_api import OpenAIBackend
from xlc_utils.chat.record import Record, RecordedModel
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.running.progress import Progress

LATENCY = 0.05
SAMPLING = Sampling(max_tokens=64)


def serve(said) -> None:
    """The endpoint: one completion of some length, always the same."""
    from aiohttp import web

    message = {"role": "assistant", "content": "An answer of a few sentences. " * 20}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 30, "completion_tokens": 120, "total_tokens": 150}
    reply = json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
                       | {"usage": usage}).encode()  # fmt: skip

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(LATENCY)
        return web.Response(body=reply, content_type="application/json")

    async def run() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=512)
        await site.start()
        said.send(site._server.sockets[0].getsockname()[1])
        await asyncio.Event().wait()

    asyncio.run(run())


def questions(count: int) -> list[str]:
    return [f"Question {i}: " + "what is asked takes a line or two. " * 6 for i in range(count)]


def body(question: str) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": question}], "max_tokens": 64, "temperature": 0}


async def _many(ask, count: int, in_flight: int) -> int:
    waiting = iter(questions(count))

    async def work() -> int:
        return sum([bool(await ask(question)) for question in waiting])

    return sum(await asyncio.gather(*(work() for _ in range(in_flight))))


def ours(url: str, count: int, in_flight: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        record = Record(Path(folder) / "calls.sqlite")
        backend = OpenAIBackend("m", {"id": "m"}, "m", [url], concurrency=in_flight)
        model = RecordedModel("m", {"id": "m"}, lambda: backend, record, Progress("ours", "calls"))
        replies = model.complete([Chat.user(question) for question in questions(count)], SAMPLING)
        record.close()
    return sum(reply.outcome is Outcome.OK for reply in replies)


def bare_aiohttp(url: str, count: int, in_flight: int) -> int:
    import aiohttp

    async def run() -> int:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

            async def ask(question: str) -> str:
                async with session.post(f"{url}/chat/completions", json=body(question)) as response:
                    return (await response.json())["choices"][0]["message"]["content"]

            return await _many(ask, count, in_flight)

    return asyncio.run(run())


def _openai(url: str, count: int, in_flight: int, http) -> int:
    from openai import AsyncOpenAI

    async def run() -> int:
        async with AsyncOpenAI(
            base_url=url, api_key="none", max_retries=0, http_client=http(trust_env=False)
        ) as client:

            async def ask(question: str) -> str:
                return (await client.chat.completions.create(**body(question))).choices[0].message.content

            return await _many(ask, count, in_flight)

    return asyncio.run(run())


def openai_httpx(url: str, count: int, in_flight: int) -> int:
    from openai import DefaultAsyncHttpxClient

    return _openai(url, count, in_flight, DefaultAsyncHttpxClient)


def openai_aiohttp(url: str, count: int, in_flight: int) -> int:
    from openai import DefaultAioHttpClient

    return _openai(url, count, in_flight, DefaultAioHttpClient)


def litellm(url: str, count: int, in_flight: int) -> int:
    import litellm

    async def ask(question: str) -> str:
        given = body(question) | {"model": "openai/m"}
        return (await litellm.acompletion(**given, api_base=url, api_key="none")).choices[0].message.content

    return asyncio.run(_many(ask, count, in_flight))


def lm_eval(url: str, count: int, in_flight: int) -> int:
    from lm_eval.api.instance import Instance
    from lm_eval.models.api_models import JsonChatStr
    from lm_eval.models.openai_completions import LocalChatCompletion

    model = LocalChatCompletion(
        base_url=f"{url}/chat/completions", model="m", num_concurrent=in_flight, tokenizer_backend=None, max_retries=1
    )
    given = {"until": [], "max_gen_toks": 64, "temperature": 0}
    requests = [
        Instance("generate_until", {}, (JsonChatStr(json.dumps(body(question)["messages"])), given), i)
        for i, question in enumerate(questions(count))
    ]
    return sum(map(bool, model.generate_until(requests, disable_tqdm=True)))


CLIENTS = {"bare aiohttp": bare_aiohttp, "openai, httpx": openai_httpx, "openai, aiohttp": openai_aiohttp, "ours": ours}
OTHERS = {"litellm": litellm, "lm_eval": lm_eval}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    here, there = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{here.recv()}/v1"
    os.environ.setdefault("OPENAI_API_KEY", "none")
    clients = CLIENTS | {name: ask for name, ask in OTHERS.items() if importlib.util.find_spec(name)}
    version = sys.version.split()[0]
    print(f"{arguments.calls} calls, {LATENCY * 1000:.0f} ms, medians of {arguments.rounds}, Python {version}")
    for in_flight in (32, 100):
        for ask in clients.values():
            ask(url, in_flight, in_flight)  # imports and first connections are not what is measured
        rates, cpus = {name: [] for name in clients}, {name: [] for name in clients}
        for _ in range(arguments.rounds):
            for name, ask in clients.items():
                start, cpu = time.perf_counter(), time.process_time()
                assert ask(url, arguments.calls, in_flight) == arguments.calls, f"{name} lost some"
                rates[name].append(arguments.calls / (time.perf_counter() - start))
                cpus[name].append((time.process_time() - cpu) / arguments.calls * 1000)
        own = statistics.median(rates["ours"])
        print(f"\n{in_flight} in flight      calls/s   CPU ms/call   ours is … times as fast")
        for name in clients:
            rate = statistics.median(rates[name])
            print(f"{name:18} {rate:9.0f} {statistics.median(cpus[name]):13.2f} {own / rate:12.2f}")
    server.kill()


if __name__ == "__main__":
    main()
