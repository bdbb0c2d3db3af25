# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Types lines into a real zsh on a terminal, each followed by a tab, and prints the results:
#
#   zsh -f completion.zsh FOLDER PERFCTL SCRATCH LINE…
#
# FOLDER holds _perfctl. For each line: "LINE|the line afterwards|all candidates".
zmodload zsh/zpty || exit 1
folder=$1 perfctl=$2 scratch=$3
shift 3

cat >$scratch/.zshrc <<END
# zsh must not wait for another key after ^X.
PS1= PS2= PROMPT_EOL_MARK= LISTMAX=100000 KEYTIMEOUT=1
unsetopt prompt_cr prompt_sp beep
fpath=($folder \$fpath)
path=(${perfctl:h} \$path)
autoload -Uz compinit && compinit -u -d $scratch/zdump
# Every candidate passes through here; -O, -A and -D only ask.
compadd() {
	local -a hits
	if [[ \${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
		builtin compadd -A hits "\$@"
		(( \$#hits == 0 )) || print -rl -- \$hits >>$scratch/hits
	fi
	builtin compadd "\$@"
}
show() {
	print -r -- "\$BUFFER" >$scratch/buffer.new
	mv $scratch/buffer.new $scratch/buffer
	BUFFER=
}
zle -N show
bindkey '^I' complete-word '^X' show
# What is typed before zsh has its terminal can be lost.
zle-line-init() { print >$scratch/ready }
zle -N zle-line-init
END

# Reads the terminal, because the shell on it blocks otherwise.
await() {
	local end=$(( SECONDS + 60 )) output
	until [[ -e $1 ]]; do
		zpty -rt shell output 2>/dev/null || sleep 0.02
		if (( SECONDS > end )); then
			print -u2 "waited in vain for $1"
			exit 1
		fi
	done
}

export ZDOTDIR=$scratch
TERM=dumb zpty shell zsh -d -i
await $scratch/ready
for line; do
	rm -f $scratch/buffer
	: >$scratch/hits
	zpty -w -n shell $line$'\t\x18'
	await $scratch/buffer
	print -r -- "$line|$(<$scratch/buffer)|$(sort -u $scratch/hits | paste -sd ' ')"
done
zpty -d shell
