# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A headless Chromium for tests. It runs as nobody; source this after lib.sh. Two pipes carry the
# DevTools protocol: JSON messages that end with a NUL.
#
#   chromium_start
#   page_open FILE#test      waits until the page says that it is ready
#   page_ask EXPRESSION      PAGE_ANSWER is its value (plain text, or JSON)
#   page_requests            its network requests since, one URL per line
#   page_press KEY…          keys, as KeyboardEvent.key has them

CHROMIUM_PID=
PAGE_ANSWER=
_page_session=
_page_id=0

chromium_start() {
	local dir=$SCRATCH/chromium

	command -v chromium >/dev/null || skip "needs chromium"
	install -d -m 0700 -o "$NOBODY" -g "$NOBODY" "$dir"
	mkfifo "$SCRATCH/to-chromium" "$SCRATCH/from-chromium"
	# Opens both ways, because opening one end of a pipe waits for the other.
	exec {_to_chromium}<>"$SCRATCH/to-chromium" {_from_chromium}<>"$SCRATCH/from-chromium"
	# Does not use as_user: the pid that ends with the test must be chromium's, which holds both
	# ends of its pipes and would not notice our exit.
	HOME=$dir spawn setpriv --reuid="$NOBODY" --regid="$NOBODY" --clear-groups -- \
		chromium --headless=new --no-sandbox --disable-gpu --no-first-run \
		--disable-background-networking --disable-component-update --disable-dev-shm-usage \
		--user-data-dir="$dir" --window-size=1440,900 --remote-debugging-pipe about:blank \
		3<&"$_to_chromium" 4>&"$_from_chromium" 2>"$SCRATCH/chromium.log"
	CHROMIUM_PID=$SPAWNED

	local target
	_page_call Target.getTargets
	target=$(jq -r '[.result.targetInfos[] | select(.type == "page")][0].targetId' <<<"$_page_reply")
	_page_call Target.attachToTarget '{targetId: $t, flatten: true}' --arg t "$target"
	_page_session=$(jq -r .result.sessionId <<<"$_page_reply")
	_page_call Page.enable
	_page_call Runtime.enable
	_page_call Network.enable
}

chromium_stop() {
	_page_session=
	_page_call Browser.close
	exec {_to_chromium}>&- {_from_chromium}>&-
	wait_until 20 gone "$CHROMIUM_PID"
}

# _page_call METHOD [PARAMS [JQ-OPTION…]]: sends a message and reads until the answer arrives in _page_reply.
# PARAMS is a jq expression, which the options give its variables. Other messages are kept.
_page_call() {
	local id=$((++_page_id)) method=$1 params=${2:-{\}} message
	shift $(($# < 2 ? $# : 2))

	message=$(jq -nc --argjson id "$id" --arg method "$method" --arg session "$_page_session" "$@" \
		"{id: \$id, method: \$method, params: $params}
		+ if \$session == \"\" then {} else {sessionId: \$session} end")
	printf '%s\0' "$message" >&"$_to_chromium"
	while IFS= read -r -d '' -t 120 -u "$_from_chromium" message; do
		case $message in
		"{\"id\":$id,\"error\""*) fail "$method: $message" ;;
		"{\"id\":$id,"*)
			_page_reply=$message
			return
			;;
		esac
		printf '%s\n' "$message" >>"$SCRATCH/page-said"
	done
	tail -n 5 "$SCRATCH/chromium.log" >&2
	fail "chromium does not answer $method"
}

page_ask() {
	_page_call Runtime.evaluate '{expression: $e, awaitPromise: true, returnByValue: true}' --arg e "$1"
	PAGE_ANSWER=$(jq -r '.result | if has("exceptionDetails")
		then .exceptionDetails.exception.description | halt_error(1) else .result.value end' <<<"$_page_reply" 2>&1) ||
		fail "$1: $PAGE_ANSWER"
}

_page_is_ready() {
	page_ask 'typeof faults !== "undefined" && !!document.body &&
		("ready" in document.body.dataset || faults.length > 0)'
	[ "$PAGE_ANSWER" = true ]
}

# Loads another page first, so that the new page answers the next request.
page_open() {
	_page_call Page.navigate '{url: "about:blank"}'
	: >"$SCRATCH/page-said"
	_page_call Page.navigate '{url: $u}' --arg u "file://$1"
	wait_until 120 _page_is_ready || fail "$1 does not get ready"
}

page_requests() {
	jq -r 'select(.method == "Network.requestWillBeSent") | .params.request.url' \
		"$SCRATCH/page-said"
}

page_press() {
	local key

	for key in "$@"; do
		_page_call Input.dispatchKeyEvent '{type: "keyDown", key: $k}' --arg k "$key"
		_page_call Input.dispatchKeyEvent '{type: "keyUp", key: $k}' --arg k "$key"
	done
}
