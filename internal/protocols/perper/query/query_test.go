package query_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/atomredis/atomredis/internal/protocols/perper/binary"
	"github.com/atomredis/atomredis/internal/protocols/perper/query"
)

// item is the type in the tests.
var item = &binary.Type{ID: binary.ID("Item"), Name: "Item", Fields: []binary.TypeField{
	{Name: "name", Code: 9, ID: binary.ID("name")}, {Name: "Price", Code: 6, ID: binary.ID("price")},
	{Name: "sold", Code: 8, ID: binary.ID("sold")}, {Name: "note", Code: 9, ID: binary.ID("note")}}}

func types(id int32) *binary.Type {
	if id == item.ID {
		return item
	}
	return nil
}

// items are the keys and values of the cache: five items, and a value of another type.
func items(t testing.TB) (pairs [][2][]byte) {
	text := func(s string) []byte {
		b, err := binary.ParseText([]byte(s))
		require.NoError(t, err)
		return b
	}
	for i, fields := range [][4]string{{"apple", "1.5", "true", "null"}, {"pear", "int(2)", "false", "good"},
		{"plum", "0.25", "false", "null"}, {"per cent", "100", "true", "50%"}, {"äpfel", "3", "null", "null"}} {
		values := make([]binary.Field, 4)
		for i, f := range item.Fields {
			values[i] = binary.Field{ID: f.ID, Value: text(fields[i])}
		}
		pairs = append(pairs, [2][]byte{binary.AppendLong(nil, int64(i)), binary.AppendObject(nil, item.ID, values)})
	}
	return append(pairs, [2][]byte{text("other"), text("7")})
}

// ask returns the rows of the result, cells separated by "|" and rows by ";".
func ask(t testing.TB, text string, args ...string) (string, error) {
	st, err := query.Parse(text)
	if err != nil {
		return "", err
	}
	if st.Kind != query.Select {
		return "", query.ErrUnsupported
	}
	config, err := binary.ParseConfig([]byte{0, 0})
	require.NoError(t, err)
	var objects [][]byte
	for _, a := range args {
		b, err := binary.ParseText([]byte(a))
		require.NoError(t, err)
		objects = append(objects, b)
	}
	run, err := st.NewRun(config, types, objects)
	if err != nil {
		return "", err
	}
	for _, pair := range items(t) {
		if !run.Add(pair[0], pair[1]) {
			break
		}
	}
	rows, err := run.Rows()
	if err != nil {
		return "", err
	}
	var lines []string
	for _, row := range rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, string(binary.AppendText(nil, cell, types)))
		}
		require.Len(t, run.Columns(), len(row))
		lines = append(lines, strings.Join(cells, "|"))
	}
	return strings.Join(lines, ";"), nil
}

func TestStatements(t *testing.T) {
	for _, test := range []struct{ text, want, args string }{
		{"SELECT _VAL FROM LONG", "7", ""},
		{"SELECT _key, _val FROM \"c\".Long", "other|7", ""},
		{"SELECT name FROM Item", "apple;pear;plum;per cent;äpfel", ""},
		{"SELECT name FROM Item WHERE price > 1", "apple;pear;per cent;äpfel", ""},
		{"select i.Name from ITEM as i where i.PRICE = 2", "pear", ""},
		{"select \"i\".\"NAME\" from ITEM \"i\" where 2 >= item.price and not sold", "pear;plum", ""},
		{"SELECT name FROM Item WHERE sold OR price = .25", "apple;plum;per cent", ""},
		{"SELECT name FROM Item WHERE NOT NOT sold = TRUE", "apple;per cent", ""},
		{"SELECT name FROM Item WHERE sold <> true", "pear;plum", ""},
		{"SELECT name FROM Item WHERE sold != FALSE", "apple;per cent", ""},
		{"SELECT name FROM Item WHERE sold IS NULL", "äpfel", ""},
		{"SELECT name FROM Item WHERE note IS NOT NULL AND (sold OR name < 'q')", "pear;per cent", ""},
		{"SELECT name FROM Item WHERE note = NULL", "", ""},
		{"SELECT name FROM Item WHERE price BETWEEN 1 AND 2", "apple;pear", ""},
		{"SELECT name FROM Item WHERE price NOT BETWEEN -1 AND 2e0", "per cent;äpfel", ""},
		{"SELECT name FROM Item WHERE name IN ('plum', 'apple', 'it''s')", "apple;plum", ""},
		{"SELECT name FROM Item WHERE name NOT IN ('plum', note)", "pear;per cent", ""},
		{"SELECT name FROM Item WHERE name LIKE 'p%' ORDER BY name DESC", "plum;per cent;pear", ""},
		{"SELECT name FROM Item WHERE name LIKE '_pfe%l'", "äpfel", ""},
		{"SELECT name FROM Item WHERE name NOT LIKE '%p%'", "", ""},
		{"SELECT name FROM Item WHERE price > ? AND name <> ?", "pear;per cent", "1.5 äpfel"},
		{"SELECT name, price FROM Item ORDER BY sold, price LIMIT 2 OFFSET 1;", "plum|0.25;pear|int(2)", ""},
		{"SELECT name FROM Item ORDER BY _KEY DESC LIMIT 1", "äpfel", ""},
		{"SELECT name FROM Item LIMIT 1 OFFSET 1", "pear", ""},
		{"SELECT name FROM Item LIMIT 0", "", ""},
		{"SELECT * FROM Item WHERE _KEY = 0", "apple|1.5|true|null", ""},
		{"SELECT COUNT(*) FROM Item WHERE sold", "2", ""},
		{"SELECT name || '!' AS loud, 2 * (price - 1) / 4 p FROM Item WHERE price % 2 = 0 ORDER BY p", "pear!|0;per cent!|49", ""},
		{"SELECT name, price FROM Item ORDER BY 2 DESC LIMIT 1", "per cent|100", ""},
		{"SELECT name FROM Item WHERE (sold = (note IS NULL))", "apple;pear", ""},
		{"SELECT name FROM Item WHERE price = '2'", "pear", ""},
		{"SELECT/* all */name -- of them\nFROM Item/**/LIMIT 1 /* end", "apple", ""},
		{"SELECT 7 / 2, 7 % -2, -(3), - -3 FROM Item LIMIT 1", "3|1|-3|3", ""},
		{"SELECT _VAL FROM Item WHERE _KEY = 0", `Item{name: "apple", Price: 1.5, sold: true, note: null}`, ""},
	} {
		got, err := ask(t, test.text, strings.Fields(test.args)...)
		require.NoError(t, err, test.text)
		require.Equal(t, test.want, got, test.text)
	}
}

func TestStatementsThatAreNotServed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "unsupported SQL at the end",
		"GRANT ALL":                        `unsupported SQL at "GRANT ALL"`,
		"SELECT MAX(price) FROM Item":      `unsupported SQL at "(price) FROM Item"`,
		"SELECT name FROM Item JOIN Other": `unsupported SQL at "JOIN Other"`,
		"SELECT name FROM Item WHERE name + 1 > 0":                  "the operands of + must be numbers",
		"SELECT 1 / 0 FROM Item":                                    "Division by zero",
		"SELECT 9223372036854775807 + 1 FROM Item":                  "Numeric value out of range",
		"SELECT name FROM Item WHERE " + strings.Repeat("- ", 1000): "unsupported SQL at the end",
		"SELECT name FROM Item WHERE 'x":                            `unsupported SQL at "'x"`,
		"SELECT -name FROM Item":                                    "the operands of - must be numbers",
		"SELECT name FROM Item WHERE name NOT":                      `unsupported SQL at the end`,
		"SELECT name FROM Item LIMIT x":                             `unsupported SQL at "x"`,
		"SELECT x.name FROM Item":                                   "unsupported SQL: X is not selected from",
		"SELECT size FROM Item":                                     `Column "SIZE" not found`,
		"SELECT name FROM Item WHERE size = 1":                      `Column "SIZE" not found`,
		"SELECT name FROM Item ORDER BY size":                       `Column "SIZE" not found`,
		"SELECT name FROM Other":                                    `Table "OTHER" not found`,
		"SELECT name FROM Item WHERE name = ?":                      "the statement has 1 arguments, not 0",
		"SELECT 1" + strings.Repeat("1", 64<<10):                    "unsupported SQL: the statement is too long",
		"SELECT name FROM Item WHERE " + strings.Repeat("(", 1000):  "unsupported SQL at",
	} {
		_, err := ask(t, text)
		require.ErrorContains(t, err, want)
	}
}

// table is a configuration with a table of a key and a value type, whose columns are the whole key and the whole value.
func table(t testing.TB, keyType, valueType, key, value string) *binary.Config {
	b := []byte{1, 0, 200, 0, 1, 0, 0, 0}
	for _, s := range []string{keyType, valueType, "Things", key, value} {
		b = binary.AppendString(b, s)
	}
	b = append(b, 2, 0, 0, 0)
	for _, s := range []string{key, value} {
		b = binary.AppendNull(append(binary.AppendString(binary.AppendString(b, s), "type"), 0, 0))
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	config, err := binary.ParseConfig(append(b, 0, 0, 0, 0, 0, 0, 0, 0))
	require.NoError(t, err)
	return config
}

func TestColumnsThatAreTheWholeKeyOrValue(t *testing.T) {
	for _, test := range []struct{ value, text, columns, want string }{
		{"java.lang.Long", "SELECT * FROM things WHERE worth > 5", "ID WORTH", "other 7"},
		{"java.lang.Long", "SELECT worth FROM things WHERE id = 'other'", "WORTH", "7"},
		{"java.lang.Long", "SELECT id, _val FROM things ORDER BY id", "ID _VAL", "other 7"},
		{"byte[]", "SELECT * FROM things", "ID WORTH", ""},
		{"Item", "SELECT * FROM things WHERE id = 1", "ID WORTH NAME PRICE SOLD NOTE", "1 Item pear int(2) false good"},
	} {
		st, err := query.Parse(test.text)
		require.NoError(t, err)
		run, err := st.NewRun(table(t, "java.lang.Object", test.value, "Id", "Worth"), types, nil)
		require.NoError(t, err, test.text)
		require.Equal(t, test.columns, strings.Join(run.Columns(), " "))
		for _, pair := range items(t) {
			run.Add(pair[0], pair[1])
		}
		rows, err := run.Rows()
		require.NoError(t, err)
		var cells []string
		for _, row := range rows {
			for _, cell := range row {
				text, _, _ := strings.Cut(string(binary.AppendText(nil, cell, types)), "{")
				cells = append(cells, text)
			}
		}
		require.Equal(t, test.want, strings.Join(cells, " "), test.text)
	}
	st, err := query.Parse("SELECT size FROM things")
	require.NoError(t, err)
	_, err = st.NewRun(table(t, "java.lang.Object", "java.lang.Long", "Id", "Worth"), types, nil)
	require.ErrorContains(t, err, `Column "SIZE" not found`)
}

func TestEntitiesOfTheConfiguration(t *testing.T) {
	entity := func(b []byte, s string) []byte { return binary.AppendString(b, s) }
	b := entity([]byte{2, 0, 203, 0}, "Other")
	b = append(b, 200, 0, 1, 0, 0, 0)
	for _, s := range []string{"java.lang.Long", "some.package.Item", "Things", "", ""} {
		b = entity(b, s)
	}
	b = append(b, 0, 0, 0, 0, 1, 0, 0, 0)
	b = append(entity(entity(b, "price"), "cost"), 0, 0, 0, 0)
	config, err := binary.ParseConfig(b)
	require.NoError(t, err)
	for table, ok := range map[string]bool{"Things": true, "Item": true, "Else": false} {
		st, err := query.Parse(fmt.Sprintf(`SELECT name FROM "Other".%s WHERE cost > 50`, table))
		require.NoError(t, err)
		require.True(t, st.In("c", config))
		require.True(t, st.In("Other", config))
		run, err := st.NewRun(config, types, nil)
		require.Equal(t, ok, err == nil, table)
		if ok {
			for _, pair := range items(t) {
				run.Add(pair[0], pair[1])
			}
			rows, err := run.Rows()
			require.NoError(t, err)
			require.Len(t, rows, 1)
		}
	}
	st, err := query.Parse("SELECT name FROM other.Item")
	require.NoError(t, err)
	require.True(t, st.In("c", config), "names that are not quoted have no case")
	st, err = query.Parse(`SELECT name FROM "OTHER".Item`)
	require.NoError(t, err)
	require.False(t, st.In("c", config))
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"SELECT _VAL FROM \"s\".ITEM AS i WHERE name LIKE 'a%' AND NOT (price > 1.5 OR sold IN (TRUE, NULL)) ORDER BY _KEY LIMIT 1",
		"CREATE TABLE IF NOT EXISTS t (id INT(11), b CHAR(3) NOT NULL DEFAULT 'x', PRIMARY KEY (id),) WITH \"cache_name=t,backups=1\"",
		"INSERT INTO Item (_KEY, name, price,) VALUES (9, 'a' || 'b', -(1 + 2) * 3), (?, DEFAULT, 5)",
		"UPDATE Item SET price = price / 0 WHERE _KEY = 1 LIMIT 2", "DELETE FROM Item WHERE name BETWEEN 'a' AND 'b';",
		"ALTER TABLE Item ADD COLUMN IF NOT EXISTS (a UUID, b DECIMAL(5, 2))", "CREATE INDEX i ON Item (name DESC) INLINE_SIZE 5",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := ask(t, text); err != nil {
			require.Empty(t, got)
		}
		newBase(t).do(t, text)
	})
}
