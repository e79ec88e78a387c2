#!/bin/sh
# Start llama-server, play a scenario against it, gate its log. Plain POSIX shell, for any CI.
#
#   MODEL=model.gguf docs/ci/gate.sh [further options of llama-server...]
#
# Settings, all from the environment:
#   SERVER    the server's command                     llama-server
#   MODEL     the model to load                        (must be given)
#   PORT      where the server listens                 8080
#   SCENARIO  a program that takes the server's URL    scenario.py beside this file
#   OUT       where log and reports go                 ckptlog-out
#   GATE      further options of ckptlog gate          (none), such as "--baseline ci/baseline.json"
#
# Exit code: the gate's own (0 passed, 1 failed, 2 unusable, 3 nothing to judge); 2 if the server does not
# start or the scenario fails.
set -eu

here=$(dirname "$0")
SERVER=${SERVER:-llama-server}
PORT=${PORT:-8080}
SCENARIO=${SCENARIO:-$here/scenario.py}
OUT=${OUT:-ckptlog-out}
: "${MODEL:?MODEL must name the model to load}"
url=http://127.0.0.1:$PORT

mkdir -p "$OUT"
log=$OUT/server.log

# What makes the log tell all: -lv 4 shows the checkpoints, the variable shows where prompts part.
LLAMA_SERVER_SLOTS_DEBUG=1 "$SERVER" --model "$MODEL" --port "$PORT" -lv 4 "$@" \
    > "$OUT/server.out" 2> "$log" &
server=$!
stop() {
    kill "$server" 2> /dev/null || true
    wait "$server" 2> /dev/null || true
}
trap 'stop' EXIT
trap 'exit 130' INT TERM

tries=0
until curl --silent --fail --noproxy '*' --output /dev/null "$url/health"; do
    tries=$((tries + 1))
    if ! kill -0 "$server" 2> /dev/null || [ "$tries" -ge 600 ]; then
        echo "gate.sh: the server did not start; the end of its log:" >&2
        tail -n 20 "$log" >&2
        exit 2
    fi
    sleep 0.5
done

python3 "$SCENARIO" "$url" || {
    echo "gate.sh: the scenario failed" >&2
    exit 2
}
stop
trap - EXIT

# shellcheck disable=SC2086 # GATE is a list of options
exec ckptlog gate "$log" --junit "$OUT/junit.xml" --sarif "$OUT/gate.sarif" ${GATE:-}
