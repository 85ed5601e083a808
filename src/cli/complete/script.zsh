#compdef kubectl-nodegate
_kubectl_nodegate() {
    local -a next
    next=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${next[1]}" ]]; then
        local -a whole=("${(@)next:#*/}") half=("${(@M)next:#*/}")
        (( ${#whole} == 0 )) || compadd -Q -- "${whole[@]}"
        (( ${#half} == 0 )) || compadd -Q -S '' -- "${half[@]}"
    else
        _files
    fi
}
compdef _kubectl_nodegate kubectl-nodegate
