# Gives a trial's directory to an account that is not root. $1: the account; $2: the directory; $3, ...: the directories of
# ours above it. The account's group may pass through these; in them only root writes, so that no one puts a link where
# root will make the directory of the next trial.
account=$1 directory=$2
group=$(id -g -- "$account") || exit
shift 2
chgrp -- "$group" "$@" && chmod g+x,go-w -- "$@" && chown -- "$account:$group" "$directory"
