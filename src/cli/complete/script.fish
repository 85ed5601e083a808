function __kubectl_nodegate
    set -l words (commandline -opc)
    set -l next ($words[1] __complete $words[2..] (commandline -ct) 2>/dev/null)
    if test -n "$next[1]"
        printf '%s\n' $next
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c kubectl-nodegate -f -a '(__kubectl_nodegate)'
