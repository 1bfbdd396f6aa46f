# Keeps what strace says on standard input of a diagnostic trial (mountlab.sweep.profiled), as $out/program_calls.gz.
# Variables of before: out, and directory, the one under test. Each line of it is one whole call, in the order in which
# they ended: "PID TIME CALL(ARGUMENTS) = RESULT <SECONDS>". No name leaves this: <t/1/4> stands for the fourth path that was
# seen, in the first one, below the directory under test; <e/...> for a path elsewhere; <pipe>, <socket>, <device>, <system>
# (/proc and /sys), <anon> for the rest. Other texts are left out. A line with anything else in it is counted, and left out.
# After `most` lines the rest is counted only. The last line: "# KEPT SKIPPED UNREAD BEGAN ENDED SEEN", the last three times.
# shellcheck disable=SC2154,SC2016 # variables put in front; text for awk
here=$(pwd -P)
root=$(cd -P "$directory" && pwd)
FROM=$here ROOT=$root MOST=${most:-500000} LC_ALL=C awk '
# The number of a path among those below one and the same directory: "t/1/4".
function numbered(path,    n, parts, i, prefix, text) {
    prefix = ""
    text = "e"
    if (path == root || index(path, root "/") == 1) {
        prefix = root
        path = substr(path, length(root) + 1)
        text = "t"
    }
    n = split(path, parts, "/")
    for (i = 1; i <= n; i++) {
        if (parts[i] == "") continue
        prefix = prefix "/" parts[i]
        if (!(prefix in number)) number[prefix] = ++paths
        text = text "/" number[prefix]
    }
    return "<" text ">"
}

function pseudonym(path,    name) {
    if (path in names) return names[path]
    if (path == root || index(path, root "/") == 1) name = numbered(path)
    else if (path ~ /^\/(proc|sys)(\/|$)/) name = "<system>"
    else if (path ~ /^\/dev\// && path !~ /^\/dev\/shm\//) name = "<device>"
    else if (path ~ /^\/memfd:/) name = "<anon>"
    else if (path ~ /^\//) name = numbered(path)
    else if (path ~ /^pipe:/) name = "<pipe>"
    else if (path ~ /^(socket:|TCP|UDP|UNIX|NETLINK|RAW)/) name = "<socket>"
    else name = "<anon>"
    names[path] = name
    return name
}

# A path as it was written, from the directory that it begins in, without ".", ".." and empty parts.
function resolved(base, path,    n, parts, i, text) {
    if (path == "") return base
    if (path !~ /^\//) path = base "/" path
    if (path !~ /\/\/|\/\.(\/|$)|\/\.\.(\/|$)|.\/$/) return path
    n = split(path, parts, "/")
    text = ""
    for (i = 1; i <= n; i++) {
        if (parts[i] == "" || parts[i] == ".") continue
        if (parts[i] == "..") sub(/\/[^\/]*$/, "", text)
        else text = text "/" parts[i]
    }
    return text == "" ? "/" : text
}

# The call with pseudonyms in the place of all texts. Sets target: the last path that was written.
function without_names(pid, call, rest,    text, token, base, path, is_path) {
    is_path = call ~ /^(open|creat|unlink|rename|mkdir|rmdir|link|mknod|truncate|chdir|stat|lstat|statx|newfstatat|fstatat|access|faccessat)/
    base = pid in cwd ? cwd[pid] : from
    text = ""
    target = base
    while (match(rest, /"([^"\\]|\\.)*"(\.\.\.)?|<[^<>]*>/)) {
        token = substr(rest, RSTART, RLENGTH)
        text = text substr(rest, 1, RSTART - 1)
        rest = substr(rest, RSTART + RLENGTH)
        if (substr(token, 1, 1) == "<") {
            path = substr(token, 2, length(token) - 2)
            sub(/ ?\(deleted\)$/, "", path)
            gsub(/\\0?74/, "\"<\"", path)
            gsub(/\\0?76/, ">", path)
            gsub(/"<"/, "<", path)
            base = path
            if (text ~ /AT_FDCWD$/) cwd[pid] = path
            target = path
            text = text pseudonym(path)
            sub(/^\(deleted\)/, "", rest)
        } else if (is_path) {
            path = token
            sub(/\.\.\.$/, "", path)
            target = resolved(base, substr(path, 2, length(path) - 2))
            text = text pseudonym(target)
        } else text = text "\"\""
    }
    return text rest
}

# Whether a text has only words of strace beside pseudonyms, so that no part of a name is left.
function is_nameless(text) {
    gsub(/""/, "", text)
    gsub(/<([te](\/[0-9]+)*|pipe|socket|device|system|anon)>/, "", text)
    gsub(/\/\* [0-9]+ (entries|vars?) \*\/|=>|[0-9]<<[0-9]/, "", text)
    return text ~ /^[][A-Za-z0-9_|=,.(){}&*~!?: +-]*$/
}

function whole_call(pid, time, rest,    call, took, text, child) {
    call = substr(rest, 1, index(rest, "(") - 1)
    took = ""
    if (match(rest, / <[0-9]+\.[0-9]+>$/)) {
        took = substr(rest, RSTART)
        rest = substr(rest, 1, RSTART - 1)
    }
    text = without_names(pid, call, rest)
    if (call !~ /^[a-z0-9_]+$/ || !is_nameless(text)) { unread++; return }
    if (call ~ /^f?chdir$/ && text ~ /\) += 0$/) cwd[pid] = target
    if (call ~ /^(clone|clone3|fork|vfork)$/ && match(text, /= [0-9]+$/)) {
        child = substr(text, RSTART + 2)
        if (!(child in cwd)) cwd[child] = pid in cwd ? cwd[pid] : from
    }
    kept++
    print pid " " time " " text took
}

BEGIN {
    root = ENVIRON["ROOT"]
    from = ENVIRON["FROM"]
    most = ENVIRON["MOST"] + 0
    kept = skipped = unread = paths = 0
    began = ended = seen = 0
}
!match($0, /^ *[0-9]+ +[0-9]+\.[0-9]+ /) { unread++; next }
{
    split(substr($0, 1, RLENGTH), head, " ")
    pid = head[1]
    ended = head[2]
    if (!began) began = ended
    if (kept >= most) { skipped++; next }
    seen = ended
    rest = substr($0, RLENGTH + 1)
}
rest ~ /^---/ { next }
rest ~ /^\+\+\+/ {
    if (pid in pending) { whole_call(pid, since[pid], pending[pid] ") = ?"); delete pending[pid] }
    delete cwd[pid]
    print pid " " ended " +++"
    next
}
rest ~ /<unfinished \.\.\.>$/ {
    sub(/ *<unfinished \.\.\.>$/, "", rest)
    pending[pid] = rest
    since[pid] = ended
    next
}
match(rest, /^<\.\.\. [a-z0-9_]+ resumed> ?/) {
    if (!(pid in pending)) { unread++; next }
    whole_call(pid, since[pid], pending[pid] substr(rest, RLENGTH + 1))
    delete pending[pid]
    next
}
{ whole_call(pid, ended, rest) }
END { printf "# %d %d %d %s %s %s\n", kept, skipped, unread, began, ended, seen }
' | gzip -1 > "$out/program_calls.gz"
