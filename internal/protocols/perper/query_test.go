package perper_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis"
	"github.com/atomredis/atomredis/atomredistest"
)

// flat returns a reply in one line, with arrays in brackets.
func flat(r atomredis.Reply) string {
	if parts, err := r.Slice(); err == nil {
		texts := make([]string, len(parts))
		for i, part := range parts {
			texts[i] = flat(part)
		}
		return "[" + strings.Join(texts, " ") + "]"
	}
	if n, err := r.Int(); err == nil {
		return strconv.FormatInt(n, 10)
	}
	text, _ := r.Text()
	return text
}

// reply returns the reply to a command in one line.
func reply(t *testing.T, s interface {
	Do(ctx context.Context, args ...any) (atomredis.Reply, error)
}, args ...any) string {
	t.Helper()
	r, err := s.Do(t.Context(), args...)
	if err != nil {
		return err.Error()
	}
	return flat(r)
}

func TestTablesOfSQL(t *testing.T) {
	s := atomredistest.Run(t)
	for _, step := range []struct{ command, statement, args, want string }{
		{"DEFINE", "CREATE TABLE city (id INT PRIMARY KEY, name CHAR(4), size BIGINT)", "", "1"},
		{"DEFINE", "CREATE TABLE city (id INT PRIMARY KEY, name CHAR(4))", "", "CACHEEXISTS the cache exists already"},
		{"DEFINE", "CREATE TABLE IF NOT EXISTS city (id INT PRIMARY KEY, name CHAR(4))", "", "0"},
		{"MODIFY", "INSERT INTO city VALUES (?, ?, 7), (2, 'Rome', 8)", "ARGS 2 1 Oslo", "2"},
		{"MODIFY", "INSERT INTO city VALUES (3, 'Bonn', 9), (2, 'Ulm', 9)", "", "BADQUERY Duplicate key during INSERT [key=int(2)]"},
		{"MODIFY", "INSERT INTO city VALUES (3, 'Bonn', 9), (3, 'Ulm', 9)", "", "BADQUERY Duplicate key during INSERT [key=int(3)]"},
		{"QUERY", "SELECT COUNT(*) FROM city", "", "[[COUNT(*)] [[2]]]"},
		{"MODIFY", "MERGE INTO city (id, name) VALUES (2, 'Ulm')", "", "1"},
		{"MODIFY", "UPDATE city SET size = id + 1 WHERE size IS NULL", "", "1"},
		{"QUERY", "SELECT id, name, size FROM city ORDER BY id", "", "[[ID NAME SIZE] [[int(1) Oslo 7] [int(2) Ulm 3]]]"},
		{"MODIFY", "UPDATE city SET name = 'Vienna'", "",
			"BADQUERY Value for a column 'NAME' is too long. Maximum length: 4, actual length: 6"},
		{"MODIFY", "DELETE FROM city WHERE id = ?", "ARGS 1 1", "1"},
		{"DEFINE", "ALTER TABLE city ADD COLUMN mayor VARCHAR", "", "1"},
		{"DEFINE", "CREATE INDEX i ON city (mayor)", "", "1"},
		{"MODIFY", "UPDATE city SET mayor = 'Ann' WHERE id = 2", "", "1"},
		{"QUERY", "SELECT * FROM city", "", "[[ID NAME SIZE MAYOR] [[int(2) Ulm 3 Ann]]]"},
		{"QUERY", "DELETE FROM city", "",
			"BADQUERY the statement is no SELECT: PERPER.MODIFY executes INSERT, MERGE, UPDATE and DELETE"},
		{"MODIFY", "SELECT * FROM city", "", "BADQUERY the statement is no INSERT, MERGE, UPDATE or DELETE"},
		{"MODIFY", "DELETE FROM other.city", "", "BADQUERY the statement asks another cache"},
		{"MODIFY", "DELETE FROM", "", "BADQUERY unsupported SQL at the end"},
		{"MODIFY", "DELETE FROM city", "ARGS 5 1", "ERR Number of keys can't be greater than number of args"},
		{"DEFINE", "DELETE FROM city", "", "BADQUERY the statement is no CREATE, DROP or ALTER"},
		{"DEFINE", "DROP TABLE town", "", `BADQUERY Table "TOWN" not found`},
		{"DEFINE", "DROP TABLE city", "", "1"},
		{"DEFINE", "DROP TABLE city", "", "NOCACHE the cache does not exist"},
		{"DEFINE", "DROP TABLE IF EXISTS city", "", "0"},
		{"MODIFY", "DELETE FROM city", "", "NOCACHE the cache does not exist"},
	} {
		args := []any{"PERPER." + step.command, "c", step.statement}
		for word := range strings.FieldsSeq(step.args) {
			args = append(args, word)
		}
		require.Equal(t, step.want, reply(t, s, args...), step.statement)
	}
	require.Equal(t, "[]", reply(t, s, "PERPER.CACHES"))
	reply(t, s, "SET", "perper:types", "x")
	require.Contains(t, reply(t, s, "PERPER.DEFINE", "c", "CREATE TABLE t (a INT PRIMARY KEY, b INT)"), "WRONGTYPE")
}

func TestRowsSurviveARestart(t *testing.T) {
	o := atomredis.Options{Dir: t.TempDir()}
	db, err := atomredis.Open(o)
	require.NoError(t, err)
	require.Equal(t, "1", reply(t, db, "PERPER.DEFINE", "c", "CREATE TABLE t (a INT, b CHAR, c UUID, PRIMARY KEY (a, b))"))
	require.Equal(t, "1", reply(t, db, "PERPER.MODIFY", "c", "INSERT INTO t (a, b) VALUES (1, 'x')"))
	before := reply(t, db, "PERPER.QUERY", "c", "SELECT _KEY, _VAL FROM t")
	const name = `SQL_PUBLIC_T_[0-9a-f_]{36}`
	require.Regexp(t, `^\[\[_KEY _VAL\] \[\[`+name+`_KEY\{A: int\(1\), B: "x"\} `+name+`\{C: null\}\]\]\]$`, before)
	require.NoError(t, db.Close())
	db, err = atomredis.Open(o)
	require.NoError(t, err)
	require.Equal(t, before, reply(t, db, "PERPER.QUERY", "c", "SELECT _KEY, _VAL FROM t"))
	require.Equal(t, "1", reply(t, db, "PERPER.MODIFY", "c", "DELETE FROM t WHERE b = 'x'"))
	require.NoError(t, db.Close())
}
