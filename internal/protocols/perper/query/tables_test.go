package query_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/query"
)

// base is a cache with the types that are registered.
type base struct {
	config  *binary.Config
	entries map[string][]byte
	types   map[int32]*binary.Type
}

func newBase(testing.TB) *base {
	return &base{config: binary.NewConfig(), entries: map[string][]byte{}, types: map[int32]*binary.Type{item.ID: item}}
}

func (b *base) typed(id int32) *binary.Type { return b.types[id] }

func (b *base) register(t testing.TB, types ...*binary.Type) error {
	for _, typ := range types {
		if known := b.types[typ.ID]; known != nil {
			if err := known.Merge(typ); err != nil {
				return err
			}
			continue
		}
		parsed, err := binary.ParseType(typ.Append(nil))
		require.NoError(t, err)
		b.types[typ.ID] = parsed
	}
	return nil
}

// do executes a statement. The result has the columns and the rows of a SELECT, or the number of changes.
func (b *base) do(t testing.TB, text string, args ...string) string {
	st, err := query.Parse(text)
	if err != nil {
		return err.Error()
	}
	if st.Kind.Defines() {
		return b.define(t, st)
	}
	var objects [][]byte
	for _, a := range args {
		object, err := binary.ParseText([]byte(a))
		require.NoError(t, err)
		objects = append(objects, object)
	}
	run, err := st.NewRun(b.config, b.typed, objects)
	if err != nil {
		return err.Error()
	}
	if st.Kind == query.Insert || st.Kind == query.Merge {
		entries, err := run.Inserts()
		return b.write(t, run, entries, err)
	}
	for _, k := range slices.Sorted(maps.Keys(b.entries)) {
		if key, ok := run.Key(); ok && string(key) != k {
			continue
		}
		if !run.Add([]byte(k), b.entries[k]) {
			break
		}
	}
	if st.Kind.Modifies() {
		entries, err := run.Changes()
		return b.write(t, run, entries, err)
	}
	rows, err := run.Rows()
	if err != nil {
		return err.Error()
	}
	lines := []string{strings.Join(run.Columns(), ",")}
	for _, row := range rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, string(binary.AppendText(nil, cell, b.typed)))
		}
		lines = append(lines, strings.Join(cells, "|"))
	}
	return strings.Join(lines, ";")
}

// write writes entries unless there was an error.
func (b *base) write(t testing.TB, run *query.Run, entries []query.Entry, err error) string {
	if err == nil {
		err = b.register(t, run.Types()...)
	}
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		if delete(b.entries, string(e.Key)); e.Value != nil {
			n, err := binary.Len(e.Value)
			require.NoError(t, err)
			require.Len(t, e.Value, n)
			b.entries[string(e.Key)] = e.Value
		}
	}
	return fmt.Sprint(len(entries))
}

func (b *base) define(t testing.TB, st *query.Statement) string {
	var types []*binary.Type
	var err error
	config, changed := b.config, true
	switch st.Kind {
	case query.CreateTable:
		config, types, err = st.NewTable(st.CacheName(), "u-1")
	case query.DropTable:
		if err = st.Drops("c", b.config); err == nil {
			config = binary.NewConfig()
		}
	default:
		var typ *binary.Type
		if changed, typ, err = st.Alter(config); typ != nil {
			types = append(types, typ)
		}
	}
	if err == nil {
		err = b.register(t, types...)
	}
	if err != nil {
		return err.Error()
	}
	if b.config, err = binary.ParseConfig(config.Encode()); err != nil {
		return err.Error()
	}
	return fmt.Sprint("changed ", changed)
}

// steps are statements, each with its arguments after "←" and its result after "→".
func (b *base) steps(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		statement, want, ok := strings.Cut(strings.TrimSpace(line), " → ")
		if !ok {
			continue
		}
		statement, args, _ := strings.Cut(statement, " ← ")
		require.Equal(t, want, b.do(t, statement, strings.Fields(args)...), statement)
	}
}

func TestTablesAreCreatedAndWritten(t *testing.T) {
	newBase(t).steps(t, `
		CREATE TABLE City (id INT(11) PRIMARY KEY, name CHAR(5), size BIGINT DEFAULT 3, rate DECIMAL(5, 2),) → changed true
		INSERT INTO city (id, name, rate,) VALUES (?, ?, '2.50') ← 1 Oslo → 1
		INSERT INTO city VALUES (2, 'Rome', NULL, 1), (3, 'Bonn', DEFAULT, 2.4) → 2
		SELECT * FROM City WHERE id < 3 ORDER BY id → ID,NAME,SIZE,RATE;int(1)|Oslo|3|decimal(2.50);int(2)|Rome|null|decimal(1)
		SELECT name FROM City WHERE rate > 2.4 → NAME;Oslo
		SELECT _key, _val FROM City c WHERE c.id = 3 → _KEY,_VAL;int(3)|SQL_PUBLIC_CITY_u_1{NAME: "Bonn", SIZE: 3, RATE: decimal(2.4)}
		SELECT name FROM City WHERE id = ? AND size IS NULL ← 2 → NAME;Rome
		SELECT name FROM City WHERE id = '1' → NAME;Oslo
		SELECT name FROM City WHERE id = 1.5 → NAME
		UPDATE City SET size = size + 1, name = name || '!' WHERE id >= 2 → 2
		SELECT id, name, size FROM City WHERE id > 1 ORDER BY id → ID,NAME,SIZE;int(2)|Rome!|null;int(3)|Bonn!|4
		UPDATE City SET size = DEFAULT WHERE name LIKE 'R%' → 1
		MERGE INTO City KEY(id) (id, name) VALUES (3, 'x') → unsupported SQL at "(id, name) VALUES (3, 'x')"
		MERGE INTO City (id, name) KEY(id) VALUES (3, 'Köln'), (4, 'Ulm') → 2
		SELECT COUNT(*) n FROM City WHERE size = 3 → N;4
		DELETE FROM City WHERE id IN (1, 4) → 2
		DELETE FROM City LIMIT 1 → 1
		SELECT name FROM City → NAME;Köln
		DELETE FROM City → 1
		DROP TABLE City IF EXISTS → changed true
	`)
}

func TestStatementsThatDoNotFitTheTable(t *testing.T) {
	b := newBase(t)
	require.Equal(t, "changed true", b.do(t, "CREATE TABLE t (a TINYINT PRIMARY KEY, b CHAR(3) NOT NULL, c UUID)"))
	b.steps(t, `
		INSERT INTO t (a, b) VALUES (1) → Column count does not match
		INSERT INTO t (a, a) VALUES (1, 1) → Duplicate column name "A"
		INSERT INTO t (a, _key) VALUES (1, 1) → Duplicate column name "_KEY"
		INSERT INTO t (a, d) VALUES (1, 1) → Column "D" not found
		INSERT INTO t (a, b) VALUES (1, c) → Column "C" not found
		INSERT INTO t (a) VALUES (1) → Null value is not allowed for column 'B'
		INSERT INTO t (b) VALUES ('x') → Key is missing from query
		INSERT INTO t (a, b) VALUES (NULL, 'x') → Null value is not allowed for column 'A'
		INSERT INTO t (a, b) VALUES (1, 'long') → Value for a column 'B' is too long. Maximum length: 3, actual length: 4
		INSERT INTO t (a, b) VALUES (128, 'x') → Data conversion error converting "128" to TINYINT
		INSERT INTO t (a, b, c) VALUES (1, 'x', 'y') → Data conversion error converting "y" to UUID
		INSERT INTO t (_key, _val) VALUES (1, 5) → The object is not of the type "SQL_PUBLIC_T_u_1"
		INSERT INTO t (a, b) VALUES (1 / 0, 'x') → Division by zero
		UPDATE t SET a = 5 → Cannot update key column "A"
		INSERT INTO t VALUES (1, 'x', '01020304-0506-0708-090A-0b0c0d0e0f10') → 1
		UPDATE t SET b = NULL → Null value is not allowed for column 'B'
		SELECT c FROM t WHERE c = '01020304-0506-0708-090a-0b0c0d0e0f10' → C;uuid(01020304-0506-0708-090a-0b0c0d0e0f10)
		SELECT c FROM u → Table "U" not found
		DROP TABLE u → Table "U" not found
		CREATE INDEX i ON t (d) → Column doesn't exist: D
	`)
}

func TestJoinedTextsHaveALimit(t *testing.T) {
	b := newBase(t)
	require.Equal(t, "changed true", b.do(t, "CREATE TABLE t (a INT PRIMARY KEY, b TEXT)"))
	half := strings.Repeat("x", 32<<10)
	require.Equal(t, "1", b.do(t, "INSERT INTO t VALUES (1, ? || ?)", half, half))
	require.Equal(t, "The text is too long", b.do(t, "UPDATE t SET b = b || 'x'"))
}

func TestTablesThatCannotBeCreated(t *testing.T) {
	for columns, want := range map[string]string{
		`a INT, b INT)`:                                   "No PRIMARY KEY defined for CREATE TABLE",
		`a INT PRIMARY KEY)`:                              "Table must have at least one non PRIMARY KEY column.",
		`a INT PRIMARY KEY, b INT PRIMARY KEY)`:           `unsupported SQL at ")"`,
		`a INT, b INT, PRIMARY KEY (c))`:                  "PRIMARY KEY column is not defined: C",
		`a INT, b INT, PRIMARY KEY (a, a))`:               "PRIMARY KEY column is duplicated: A",
		`a INT PRIMARY KEY, a INT)`:                       "Duplicate column name: A",
		`a INT PRIMARY KEY, _val INT)`:                    "Direct specification of _KEY and _VAL columns is forbidden",
		`a INT PRIMARY KEY, b THING)`:                     `unsupported SQL at "THING)"`,
		`a INT PRIMARY KEY, b INT DEFAULT 'x')`:           `Data conversion error converting "x" to INTEGER`,
		`a INT PRIMARY KEY, b INT DEFAULT a)`:             `unsupported SQL at "a)"`,
		`a INT PRIMARY KEY, b INT) WITH "x=1"`:            "Unsupported parameter: X",
		`a INT PRIMARY KEY, b INT) WITH "backups=-1"`:     "BACKUPS must be a number: -1",
		`a INT PRIMARY KEY, b INT) WITH "template=x"`:     `Invalid value of "TEMPLATE" parameter: x`,
		`a INT PRIMARY KEY, b INT) WITH "affinity_key=b"`: "Affinity key column must be one of key columns: B",

		`a INT, b INT, c INT, PRIMARY KEY (a, b)) WITH "wrap_key=false"`: "WRAP_KEY cannot be false when composite primary key exists.",

		`a INT PRIMARY KEY, b INT, c INT) WITH "wrap_value=false"`: "WRAP_VALUE cannot be false when multiple non-primary key columns exist.",

		`a INT PRIMARY KEY, b INT) WITH "value_type=Item,wrap_value=why"`: `Invalid value of "WRAP_VALUE" parameter: WHY`,
		`a INT PRIMARY KEY, name INT) WITH "value_type=Item"`:             `field "NAME" of type "Item" has another type`,
	} {
		require.Equal(t, want, newBase(t).do(t, "CREATE TABLE t ("+columns), columns)
	}
}

func TestKeysOfSeveralColumns(t *testing.T) {
	b := newBase(t)
	b.steps(t, `
		CREATE TABLE s (id INT, dept TEXT, name CHAR, PRIMARY KEY (id, dept)) WITH "KEY_TYPE=K,VALUE_TYPE=S,affinityKey=dept" → changed true
		INSERT INTO s (dept, id, name) VALUES ('a', 2, 'Abe') → 1
		SELECT * FROM s → ID,DEPT,NAME;int(2)|a|Abe
		SELECT _key, _val FROM s WHERE dept = 'a' AND id = 2 → _KEY,_VAL;K{ID: int(2), DEPT: "a"}|S{NAME: "Abe"}
		UPDATE s SET dept = 'b' → Cannot update key column "DEPT"
		DELETE FROM s WHERE id = 2 → 1
	`)
	require.Equal(t, []binary.AffinityKey{{TypeID: binary.ID("K"), FieldID: binary.ID("dept")}}, b.config.AffinityKeys())
}

// TestObjectsHaveTheFormOfClients checks the bytes of a key, which must be those that clients send for the same key.
func TestObjectsHaveTheFormOfClients(t *testing.T) {
	b := newBase(t)
	b.do(t, `CREATE TABLE s (id INT, dept VARCHAR, name CHAR, PRIMARY KEY (id, dept)) WITH "KEY_TYPE=m.Key"`)
	require.Equal(t, "1", b.do(t, "INSERT INTO s VALUES (2, 'a', 'Abe')"))
	for k := range b.entries {
		require.Len(t, k, 24+5+6+2)
		require.Equal(t, []byte{103, 1, 1 + 2 + 8 + 32, 0}, []byte(k[:4]), "flags: a schema, offsets of a byte, a compact footer")
		require.Equal(t, []byte{24, 29}, []byte(k[len(k)-2:]))
	}
}

func TestTablesAreAltered(t *testing.T) {
	b := newBase(t)
	b.steps(t, `
		CREATE TABLE t (a INT PRIMARY KEY, b INT) WITH "template=replicated,backups=2,atomicity=transactional" → changed true
		INSERT INTO t VALUES (1, 2) → 1
		ALTER TABLE t ADD COLUMN (c CHAR, d DATE) → changed true
		ALTER TABLE t ADD c INT → Column already exists: C
		ALTER TABLE t ADD COLUMN IF NOT EXISTS c INT → changed false
		UPDATE t SET c = 'x', d = '2026-11-30' → 1
		SELECT * FROM t WHERE d < '2026-12-01' → A,B,C,D;int(1)|int(2)|x|date("2026-11-30T00:00:00.000Z")
		CREATE INDEX ON t (b, c DESC) → changed true
		CREATE INDEX T_B ON t (b) INLINE_SIZE 10 → changed true
		CREATE INDEX t_b ON t (b) → Index already exists: T_B
		CREATE INDEX IF NOT EXISTS t_b ON t (b) → changed false
		ALTER TABLE t DROP COLUMN b → Cannot drop column "B" because an index exists ("t_b_asc_c_desc_idx") that uses the column.
		DROP INDEX "t_b_asc_c_desc_idx" → changed true
		DROP INDEX t_b → changed true
		DROP INDEX t_b → Index doesn't exist: T_B
		DROP INDEX IF EXISTS t_b → changed false
		ALTER TABLE t DROP COLUMN (b, c) → changed true
		ALTER TABLE t DROP COLUMN b → Column doesn't exist: B
		ALTER TABLE t DROP COLUMN IF EXISTS b → changed false
		ALTER TABLE t DROP a → Cannot drop column because it is a part of a cache key: "A"
		SELECT * FROM t → A,D;int(1)|date("2026-11-30T00:00:00.000Z")
		SELECT b FROM t → Column "B" not found
	`)
	require.True(t, b.config.Replicated())
	require.Equal(t, 2, b.config.Backups())
}

func TestTablesOfOneValue(t *testing.T) {
	newBase(t).steps(t, `
		CREATE TABLE t (a VARCHAR PRIMARY KEY, b TIMESTAMP) WITH "wrap_value=false" → changed true
		INSERT INTO t VALUES ('x', '2026-11-30 10:00:00.5') → 1
		SELECT * FROM t WHERE b > '2026-11-30' → A,B;x|timestamp("2026-11-30T10:00:00.500000000Z")
		UPDATE t SET b = '2026-12-01' WHERE a = 'x' → 1
		SELECT _val FROM t WHERE a = 'x' → _VAL;timestamp("2026-12-01T00:00:00.000000000Z")
		ALTER TABLE t ADD c INT → Cannot add column(s) because table was created with WRAP_VALUE=false option.
		ALTER TABLE t DROP b → Cannot drop column because it represents an entire cache value: "B"
		INSERT INTO t (a) VALUES ('y') → Value is missing from query
	`)
}

func TestTablesOfAConfigurationAreWritten(t *testing.T) {
	b := newBase(t)
	b.config = table(t, "java.lang.Long", "java.lang.String", "Id", "Worth")
	b.steps(t, `
		INSERT INTO things VALUES (1, 'x'), ('2', 5) → 2
		SELECT * FROM things → ID,WORTH;1|x;2|"5"
		DROP TABLE things → Only cache created with CREATE TABLE may be removed with DROP TABLE [cacheName=c]
	`)
	b = newBase(t)
	b.steps(t, `
		INSERT INTO Item (_key, name, price) VALUES (1, 'fig', 2) → 1
		SELECT * FROM Item WHERE _key = 1 → NAME,PRICE,SOLD,NOTE;fig|2.0|null|null
		UPDATE Item SET sold = price > 1 → 1
		SELECT sold FROM Item → SOLD;true
		INSERT INTO Item (name) VALUES ('fig') → Key is missing from query
	`)
}
