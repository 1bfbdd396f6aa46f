# Needs contents.sh operations.sh
# sqlite.sh DIRECTORY CACHE OPERATIONS ROWS seed=SEED PRAGMAS ROW_SIZE TRANSACTION JOURNAL SYNCHRONOUS PAGE_SIZE SQLITE PROGRAM...
# Insert rows into a table of SQLite, overwrite them, read them, and vacuum the file: a process each, one transaction after
# the other. Prints a line for each measured operation: its name, what was counted of it, and its stamps.
#   PRAGMAS  a file for lines `OPERATION JOURNAL SYNCHRONOUS PAGE_SIZE`, as SQLite itself tells them
rows=$1 seed=${2#seed=} pragmas=$3 row_size=$4 transaction=$5 journal=$6 synchronous=$7 page_size=$8 sqlite=$9
shift 8
# shellcheck disable=SC2034 # for operations.sh
programs=$*
file=$directory/data.db
SQLITE_TMPDIR=$directory
export SQLITE_TMPDIR
# Rows of seeded bytes that are kept in memory for insert and update, about a mebibyte of them.
kinds=$((1048576 / row_size))
[ "$kinds" -gt 64 ] || kinds=64
[ "$kinds" -lt 4096 ] || kinds=4096

# sql FILE: the shell of SQLite, without the settings of a user.
sql() { "$sqlite" -batch -bail -init /dev/null "$@"; }

# For insert and update. Each row begins at another byte of the pool.
load_rows() {
    echo "PRAGMA temp_store = memory; CREATE TEMP TABLE kinds (k INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TEMP TABLE pool AS SELECT readfile('$directory/pool') AS bytes;
WITH RECURSIVE n(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM n WHERE k < $kinds - 1)
INSERT INTO kinds SELECT k, substr(pool.bytes, 1 + k * 4099 % 131072, $row_size) FROM n, pool;
SELECT 'loaded', total_changes();"
}

insert() {
    awk -v rows="$rows" -v t="$transaction" -v kinds="$kinds" 'BEGIN {
        for (i = 1; i <= rows; i += t)
            printf "WITH RECURSIVE n(i) AS (SELECT %d UNION ALL SELECT i + 1 FROM n WHERE i < %d) " \
                "INSERT INTO data SELECT i, bytes FROM n, kinds WHERE k = i %% %d;\n", i, i + t - 1, kinds
    }'
}
update() {
    awk -v rows="$rows" -v t="$transaction" -v kinds="$kinds" -v seed="$seed" "$leaps"'BEGIN {
        for (i = 0; i < rows; i++) {
            if (t > 1 && i % t == 0) print "BEGIN IMMEDIATE;"
            id = place(i, rows) + 1
            printf "UPDATE data SET bytes = (SELECT bytes FROM kinds WHERE k = %d) WHERE id = %d;\n", (id + 1) % kinds, id
            if (t > 1 && i % t == t - 1) print "COMMIT;"
        }
    }'
}
select_rows() {
    awk -v rows="$rows" -v seed="$seed" "$leaps"'BEGIN {
        for (i = 0; i < rows; i++) printf "SELECT length(bytes) FROM data WHERE id = %d;\n", place(i, rows) + 1
    }'
}
vacuum() { echo 'VACUUM;'; }

# statements NAME FUNCTION: what SQLite is given. Its shell runs `.system` between two statements: the stamps of stamps.sh.
statements() {
    echo "PRAGMA page_size = $page_size; PRAGMA journal_mode = $journal; PRAGMA synchronous = $synchronous;
.output '$directory/stated'
PRAGMA journal_mode; PRAGMA synchronous; PRAGMA page_size;
.output"
    case $1 in
    insert) echo 'CREATE TABLE data (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);' && load_rows ;;
    update) load_rows ;;
    esac
    # shellcheck disable=SC2016 # for the shell that SQLite starts
    echo '.system f=$(date +%s%N); read -r a _ </proc/uptime; s=$(date +%s%N); read -r b _ </proc/uptime; echo "from $f $s $a $b"'
    "$2"
    # shellcheck disable=SC2016
    echo '.system read -r c _ </proc/uptime; e=$(date +%s%N); read -r d _ </proc/uptime; echo "to $e $c $d"'
    echo "SELECT 'changed', total_changes();"
}

# work NAME FUNCTION: set `stamps`, and `counts` to what the output of its statements comes to.
work() {
    settle
    stated=$(statements "$1" "$2" | sql "$file" | awk -F '[ |]' '
        $1 == "from" { first = $2; start = $3; a = $4; b = $5; next }
        $1 == "to" { end = $2; c = $3; d = $4; next }
        $1 == "loaded" { loaded = $2; next }
        $1 == "changed" { changed = $2 - loaded; next }
        /^[0-9]+$/ { n++; bytes += $1 }
        END { print first, start, end, a, b, c, d; printf "%.0f %.0f %.0f\n", changed, n, bytes }')
    stamps=$(printf '%s\n' "$stated" | head -n 1) stated=$(printf '%s\n' "$stated" | tail -n 1)
    case $stamps in *[0-9]' '*[0-9]' '*[0-9]' '*.*' '*.*' '*.*' '*.*) ;; *) fail "SQLite did not end its statements ($1)" ;; esac
    [ -s "$directory/stated" ] && printf '%s %s\n' "$1" "$(tr '\n' ' ' < "$directory/stated")" >> "$pragmas" || fail 'SQLite tells no pragmas'
}

content() { sql "$file" 'SELECT count(*), sum(length(bytes)) FROM data;' | tr '|' ' '; }

make_pool "$((seed + 1))"
work insert insert
report insert "$(content)"
if is_measured update; then
    work update update
    report update "${stated%% *}"
fi
if is_measured select; then
    work select select_rows
    report select "${stated#* }"
fi
if is_measured vacuum; then
    work vacuum vacuum
    said=$(sql "$file" 'PRAGMA quick_check;')
    [ "$said" = ok ] || fail "the file is damaged: $said"
    report vacuum "$(content)"
fi
