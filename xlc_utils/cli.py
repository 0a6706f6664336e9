"""The `xlc` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from xlc_utils.registry.problems import Problem

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Re-run two papers on multilingual LLM evaluation: seven notebooks, one params file.",
)

language_app = typer.Typer(no_args_is_help=True, help="Add a language, and check everything about it.")
app.add_typer(language_app, name="language")

INTERRUPTED = 130  # 128 + SIGINT, as shells have it

ParamsFile = Annotated[Path, typer.Argument(metavar="PARAMS", help="A params file, such as params/demo.yaml.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="The run's name: its folder in results/.")]
Changes = Annotated[list[str], typer.Option("--set", metavar="KEY=VALUE", help="Change one parameter for this call.")]


@app.command()
def run(
    params_file: ParamsFile,
    only: Annotated[str, typer.Option(metavar="04,05", help="Only these notebooks.")] = "",
    start: Annotated[str, typer.Option("--from", metavar="03", help="This notebook and those after it.")] = "",
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="Of one model alone, as RUN.NAME.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Execute also what has not changed.")] = False,
    data: Annotated[str, typer.Option("--data", metavar="DIR", help="Holds epitome/ and others; else XLC_DATA.")] = "",
    set_: Changes = [],  # noqa: B006 typer reads the default and never changes it
) -> None:
    """Execute the notebooks in order; go on where an earlier run stopped."""
    import os

    from xlc_utils.registry.files import shown
    from xlc_utils.running.one_model import of_one_model
    from xlc_utils.running.params import check
    from xlc_utils.running.pipeline import notebooks, run_pipeline, selected

    if data:
        os.environ["XLC_DATA"] = str(Path(data).resolve())  # the notebooks' processes read it too
    root, params = _checked(params_file, set_, keys=not model)
    if model:
        params = of_one_model(params, model)
        check(params, root, shown(params_file))  # the keys of the other models are not wanted here
    chosen = selected(notebooks(root), [n.strip() for n in only.split(",") if n.strip()], start or None)
    run_pipeline(root, params, chosen, force)
    folder = Path("results") / params.run_name
    if (root / folder / "report.html").exists():
        typer.echo(f"Results: {folder}/tables, {folder}/figures; open {folder}/report.html in a browser.")


@app.command()
def plan(params_file: ParamsFile, set_: Changes = []) -> None:  # noqa: B006
    """Say what a run will cost before it does anything."""
    from xlc_utils.running.plan import information_settings, plan_table, render, render_settings

    root, params = _checked(params_file, set_, keys=False)
    table = plan_table(root, params)
    typer.echo(render(table))
    if not table.empty and table["notebook"].eq("04_information").any():
        typer.echo("\n" + render_settings(information_settings(root, params)))


@app.command()
def status(run_name: RunName) -> None:
    """Show which notebooks of a run are done, and how its items ended."""
    from xlc_utils.registry.files import project_root
    from xlc_utils.running.status import status_text

    typer.echo(status_text(project_root(), run_name))


@app.command()
def calls(
    run_name: RunName,
    errors: Annotated[bool, typer.Option("--errors", help="Show why calls failed.")] = False,
    export: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all calls as JSON lines.")] = None,
    import_: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Enter such calls or a record.")
    ] = None,
) -> None:
    """List a run's model calls, or take them to another machine and back."""
    from xlc_utils.chat import exchange
    from xlc_utils.chat.record import Record
    from xlc_utils.registry.files import project_root
    from xlc_utils.running.status import record_of

    root = project_root()
    # Calls may be entered before a run has begun: it will not ask them.
    record = Record(root / "results" / run_name / "calls.sqlite") if import_ else record_of(root, run_name)
    if record.repaired:
        typer.echo(record.repaired, err=True)
    if import_:
        new, total = exchange.import_(record, import_)
        typer.echo(f"{new} of {total} calls are new.")
    if export:
        typer.echo(f"{exchange.export(record, export)} calls written to {export}.")
    if errors:
        typer.echo(exchange.errors_text(record))
    elif not (export or import_):
        typer.echo(exchange.calls_text(record))


@app.command()
def view(run_name: RunName) -> None:
    """Write a run's answers as one page to read, with claims, profiles, scores and outcomes."""
    from xlc_utils.registry.files import project_root
    from xlc_utils.reporting import viewer
    from xlc_utils.running.params import Params
    from xlc_utils.running.run import Run
    from xlc_utils.running.status import record_of

    root = project_root()
    record_of(root, run_name)  # that there is one: opening a run would make it
    page = viewer.write(Run(root, Params(run_name=run_name), set(), "view"))
    megabytes = page.stat().st_size / 1e6
    typer.echo(f"Answers: open results/{run_name}/{page.name} in a browser ({megabytes:.1f} MB, needs no network).")


@app.command()
def doctor() -> None:
    """Check each part of the installation: one line a part, OK or FAIL with the remedy."""
    from xlc_utils.registry.files import project_root
    from xlc_utils.running.doctor import checks

    failed = False
    for check in checks(project_root()):
        failed |= check.required and not check.ok
        typer.echo(check.line)
    raise typer.Exit(1 if failed else 0)


@app.command()
def audit(
    entry: Annotated[str, typer.Argument(metavar="[ENTRY]", help="Show this entry with all its numbers.")] = "",
    write: Annotated[bool, typer.Option("--write", help="Write KNOWN_DIFFERENCES.md.")] = False,
) -> None:
    """Hold what both papers print against what can be recomputed here."""
    from xlc_utils.registry.files import project_root
    from xlc_utils.reporting import audit

    if entry:
        typer.echo(audit.described(audit.entry(entry)))
    elif write:
        path = project_root() / audit.FILE
        path.write_text(audit.markdown(), encoding="utf-8", newline="\n")
        typer.echo(f"Written: {audit.FILE}")
    else:
        typer.echo(audit.rendered(audit.audit_table()))


Code = Annotated[str, typer.Argument(metavar="CODE", help="A language code of BCP 47, such as sw or zh-Hant.")]


@language_app.command("new")
def language_new(code: Code) -> None:
    """Write params/languages/CODE.yaml, filled from what libraries know; say what is missing."""
    from xlc_utils.registry.files import project_root, shown
    from xlc_utils.running import new_language

    path, lacking = new_language.create(project_root(), code)
    typer.echo(f"Written: {shown(path)}. Answer the questions in it.")
    typer.echo(new_language.told(lacking))
    typer.echo(f"Then: xlc language check {path.stem}")


@language_app.command("check")
def language_check(
    code: Annotated[str, typer.Argument(metavar="[CODE]", help="A registered language.")] = "",
    all_: Annotated[bool, typer.Option("--all", help="Every language, a line each.")] = False,
) -> None:
    """Check all that can be checked about a language: OK, missing or wrong; exit code 1 if something is wrong."""
    from xlc_utils.registry.files import project_root
    from xlc_utils.running import language_check as check

    if bool(code) == all_:
        raise Problem("xlc language check", "it takes a code, or --all", "write `xlc language check sw`, say")
    rows = check.table(project_root()) if all_ else [(code, "", list(check.checks(project_root(), code)))]
    typer.echo(check.summary(rows) if all_ else "\n".join(map(str, rows[0][2])))
    raise typer.Exit(int(any(line.state == "wrong" for *_, found in rows for line in found)))


@language_app.command("review")
def language_review(
    code: Code,
    by: Annotated[str, typer.Option(metavar="ROLE", help="Who has read the texts, such as 'native speaker, teacher'.")],
    when: Annotated[str, typer.Option(metavar="YYYY-MM-DD", help="The day; today if not given.")] = "",
) -> None:
    """Record that a native speaker has read all texts of a language as they are now."""
    from datetime import date

    from xlc_utils.registry import languages, reviews
    from xlc_utils.registry.files import project_root

    root = project_root()
    key = languages.read(root, code).code
    for name in reviews.record(root, key, by, when or date.today().isoformat()):
        typer.echo(f"reviewed  {name}")


def _checked(params_file: Path, changes: list[str], keys: bool = True):
    """The project folder and the checked parameters."""
    from xlc_utils.registry.files import project_root, shown
    from xlc_utils.running.params import check, load

    root, values = project_root(), dict(_change(text) for text in changes)
    params = load(params_file, values)
    check(params, root, shown(params_file), keys)
    return root, params


def _change(text: str) -> tuple[str, object]:
    """Key and value of one --set; the value as it would stand in the file."""
    import yaml

    name, equals, value = text.partition("=")
    if not equals:
        raise Problem(f"--set {text}", "there is no `=` in it", "write --set key=value")
    try:
        return name.strip(), yaml.safe_load(value)
    except (yaml.YAMLError, ValueError) as error:
        what = f"its value is not YAML ({getattr(error, 'problem', error)})"
        raise Problem(f"--set {text}", what, "write it as in a params file") from None


def main() -> None:
    """Entry point: a `Problem` is one sentence and exit code 2, Ctrl-C is exit code 130."""
    try:
        code = app(standalone_mode=False)  # an exit code if the command ended by one, Ctrl-C included
    except Problem as problem:
        typer.echo(f"xlc: {problem}", err=True)
        code = 2
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        # Usage errors of the command line know how to show themselves; anything else is a bug and keeps its traceback.
        if not (hasattr(error, "show") and hasattr(error, "exit_code")):
            raise
        error.show()
        code = error.exit_code
    if code == INTERRUPTED:
        typer.echo("xlc: interrupted; what was answered is kept, run the same command to go on.", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
