package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ergochat/readline"

	"github.com/atomredis/atomredis/resp"
)

// historyLines is the length of the history file.
const historyLines = 1000

// Interactive reads lines from a terminal, with editing, history, hints and completion, until the user quits or ctx
// ends. Ctrl-C stops the running command by closing the connection.
func (s *Shell) Interactive(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		fmt.Fprintln(s.Err, err) // the server may start later
	} else if err := s.loadDocs(ctx); err != nil {
		return err
	}
	s.terminal = true
	e := &editor{s: s}
	rl, err := readline.NewFromConfig(&readline.Config{
		HistoryFile: historyFile(), HistoryLimit: historyLines, DisableAutoSaveHistory: true, HistorySearchFold: true,
		InterruptPrompt: "\n", EOFPrompt: "\n", Undo: true,
		AutoComplete: e, Painter: e.paint, Listener: e.typed, FuncFilterInputRune: e.key,
	})
	if err != nil {
		return err
	}
	defer rl.Close()
	e.size = rl.GetConfig().FuncGetSize
	defer context.AfterFunc(ctx, func() { rl.Close() })()
	for {
		rl.SetPrompt(s.prompt())
		e.length = 0
		line, err := rl.ReadLine()
		switch {
		case errors.Is(err, readline.ErrInterrupt) && e.length > 0:
			continue
		case errors.Is(err, io.EOF), errors.Is(err, readline.ErrInterrupt):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if strings.TrimSpace(line) != "" && !secret(line) {
			rl.SaveToHistory(line)
		}
		running, stop := signal.NotifyContext(ctx, os.Interrupt)
		last, err := s.line(running, line)
		if interrupted := running.Err() != nil; err != nil && !interrupted && !errors.Is(err, ErrReply) {
			fmt.Fprintln(s.Err, "Error:", err)
		}
		stop()
		if last || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.conn == nil {
			if err := s.connect(ctx); err == nil && len(s.docs) == 0 {
				s.loadDocs(ctx)
			}
		}
	}
}

// editor adds hints and completion to the line that the user types.
type editor struct {
	s      *Shell
	size   func() (width, height int) // size of the terminal
	length int                        // length of the line
	hinted bool                       // a hint is visible behind the cursor
}

// typed is called after a key has changed the line. Its result makes readline paint the whole line, with the hint.
func (e *editor) typed(line []rune, pos int, key rune) ([]rune, int, bool) {
	e.length = len(line)
	return line, pos, key != 0
}

// key is called before a key takes effect. It removes the hint when the line is complete.
func (e *editor) key(r rune) (rune, bool) {
	switch r {
	case readline.CharEnter, readline.CharCtrlJ, readline.CharInterrupt:
		if e.hinted {
			os.Stdout.WriteString("\x1b[J")
		}
	}
	return r, true
}

// paint adds a hint if the cursor is at the end of the line.
func (e *editor) paint(line []rune, pos int) []rune {
	if e.hinted = false; pos != len(line) || pos == 0 || e.size == nil {
		return line
	}
	hint := []rune(e.s.docs.hint(string(line)))
	width, _ := e.size()
	// The hint must not make the terminal scroll.
	room := width - len([]rune(e.s.prompt())) - len(line) - 1
	if hint = hint[:max(0, min(len(hint), room))]; len(hint) == 0 {
		return line
	}
	e.hinted = true
	const saveCursor, grey, plain, restoreCursor = "\x1b7", "\x1b[90m", "\x1b[0m", "\x1b8"
	return []rune(string(line) + saveCursor + grey + string(hint) + plain + restoreCursor)
}

// Do implements readline.AutoCompleter for the text before the cursor.
func (e *editor) Do(line []rune, pos int) (endings [][]rune, length int) {
	candidates, last := e.s.docs.complete(string(line[:pos]))
	for _, word := range candidates {
		endings = append(endings, []rune(word[len(last):]+" "))
	}
	return endings, len([]rune(last))
}

// historyFile returns the path of the history file, "" for no history. Only the owner can read the file.
func historyFile() string {
	path := os.Getenv("REDISCLI_HISTFILE")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		path = filepath.Join(home, ".atomredis_history")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return ""
	}
	f.Close()
	return path
}

// secret reports whether a line may contain a password, and must not go into the history.
func secret(line string) bool {
	split, err := resp.SplitArgs([]byte(line), nil)
	if err != nil || len(split) == 0 {
		return err != nil
	}
	words := make([]string, len(split))
	for i, w := range split {
		words[i] = strings.ToLower(string(w))
	}
	if _, err := strconv.Atoi(words[0]); err == nil && len(words) > 1 {
		words = words[1:] // the number of repetitions
	}
	has := func(list ...string) bool {
		for _, word := range words[1:] {
			for _, w := range list {
				if strings.Contains(word, w) {
					return true
				}
			}
		}
		return false
	}
	switch words[0] {
	case "auth":
		return true
	case "acl":
		return has("setuser")
	case "config":
		return has("auth", "pass", "secret")
	case "hello", "migrate":
		return has("auth")
	case "sentinel":
		return has("auth", "set", "config")
	}
	return false
}
