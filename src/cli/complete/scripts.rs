//! What each shell has to be told, once.

use clap::ValueEnum;

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
}

impl Shell {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bash, Self::Zsh, Self::Fish];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }
}

const BASH: &str = r#"_kubectl_nodegate() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace
    fi
}
complete -o default -F _kubectl_nodegate kubectl-nodegate
"#;

const ZSH: &str = r#"#compdef kubectl-nodegate
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
"#;

const FISH: &str = r#"function __kubectl_nodegate
    set -l words (commandline -opc)
    set -l next ($words[1] __complete $words[2..] (commandline -ct) 2>/dev/null)
    if test -n "$next[1]"
        printf '%s\n' $next
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c kubectl-nodegate -f -a '(__kubectl_nodegate)'
"#;

/// What the shell reads to complete `kubectl-nodegate`.
#[must_use]
pub const fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    }
}
