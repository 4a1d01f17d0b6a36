#compdef oda
# Completion of oda in zsh. Names of files are completed where nothing else fits.
_oda() {
    local line tab=$'\t'
    local -a found
    for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] || continue
        if [[ $line == *$tab* ]]; then
            found+=("${${line%%$tab*}//:/\\:}:${line#*$tab}")
        else
            found+=("${line//:/\\:}")
        fi
    done
    if (( $#found )); then
        _describe oda found
    else
        _files
    fi
}
if [[ $funcstack[1] == _oda ]]; then
    _oda "$@"
else
    compdef _oda oda
fi
