package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// CompletionCmd prints a completion script.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints it, made from the commands there are.
func (c *CompletionCmd) Run(e *Env, ctx *kong.Context) error {
	return shells[c.Shell](e.stdout, wordsOf(ctx.Model.Node))
}

// level is one command and what may follow it.
type level struct {
	path     string   // the words that lead here; "" is the program
	commands []string // that may follow, aliases included
	flags    []string // with their dashes
}

// wordsOf walks the commands.
func wordsOf(root *kong.Node) []level {
	var out []level
	var walk func(n *kong.Node, path string)
	walk = func(n *kong.Node, path string) {
		l := level{path: path}
		for _, c := range n.Children {
			if !c.Hidden {
				l.commands = append(append(l.commands, c.Name), c.Aliases...)
			}
		}
		for _, group := range n.AllFlags(true) {
			for _, f := range group {
				l.flags = append(l.flags, "--"+f.Name)
			}
		}
		out = append(out, l)
		for _, c := range n.Children {
			if !c.Hidden {
				walk(c, strings.TrimSpace(path+" "+c.Name))
				for _, alias := range c.Aliases {
					walk(c, strings.TrimSpace(path+" "+alias))
				}
			}
		}
	}
	walk(root, "")
	return out
}

var shells = map[string]func(io.Writer, []level) error{"bash": bash, "zsh": zsh, "fish": fish}

// table is a shell function that prints what may follow a path. bash and zsh read it alike.
func table(levels []level) string {
	var b strings.Builder
	b.WriteString("_ecotone_words() {\n  case \"$1\" in\n")
	for _, l := range levels {
		fmt.Fprintf(&b, "    %q) echo %q ;;\n", "commands:"+l.path, strings.Join(l.commands, " "))
		fmt.Fprintf(&b, "    %q) echo %q ;;\n", "flags:"+l.path, strings.Join(l.flags, " "))
	}
	b.WriteString("  esac\n}\n")
	return b.String()
}

func bash(w io.Writer, levels []level) error {
	_, err := fmt.Fprintf(w, `# bash completion of ecotone; made by: ecotone completion bash
%s_ecotone() {
  local cur="${COMP_WORDS[COMP_CWORD]}" path="" w
  for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case " $(_ecotone_words "commands:$path") " in
      *" $w "*) path="${path:+$path }$w" ;;
    esac
  done
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$(_ecotone_words "flags:$path")" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$(_ecotone_words "commands:$path")" -- "$cur")) ;;
  esac
}
complete -o default -F _ecotone ecotone
`, table(levels))
	return err
}

func zsh(w io.Writer, levels []level) error {
	_, err := fmt.Fprintf(w, `#compdef ecotone
# zsh completion of ecotone; made by: ecotone completion zsh
%s_ecotone() {
  local at="" w
  for w in "${(@)words[2,CURRENT-1]}"; do
    case " $(_ecotone_words "commands:$at") " in
      *" $w "*) at="${at:+$at }$w" ;;
    esac
  done
  local kind=commands
  [[ "${words[CURRENT]}" == -* ]] && kind=flags
  local -a next
  next=(${=$(_ecotone_words "$kind:$at")})
  if (( $#next )); then compadd -- $next; else _files; fi
}
compdef _ecotone ecotone
`, table(levels))
	return err
}

func fish(w io.Writer, levels []level) error {
	var b strings.Builder
	b.WriteString(`# fish completion of ecotone; made by: ecotone completion fish
function __ecotone_words
  switch $argv[1]
`)
	for _, l := range levels {
		fmt.Fprintf(&b, "    case '%s'\n      string split ' ' -- '%s'\n", "commands:"+l.path, strings.Join(l.commands, " "))
		fmt.Fprintf(&b, "    case '%s'\n      string split ' ' -- '%s'\n", "flags:"+l.path, strings.Join(l.flags, " "))
	}
	b.WriteString(`  end
end
function __ecotone_next
  set -l path ''
  for w in (commandline -opc)[2..]
    if contains -- $w (__ecotone_words "commands:$path")
      set path (string trim -- "$path $w")
    end
  end
  if string match -q -- '-*' (commandline -ct)
    __ecotone_words "flags:$path"
  else
    __ecotone_words "commands:$path"
  end
end
complete -c ecotone -a '(__ecotone_next)'
`)
	_, err := io.WriteString(w, b.String())
	return err
}
