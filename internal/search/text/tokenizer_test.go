package text

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// words returns the words of a text, joined by |.
func words(t *Tokenizer, text string) string {
	var found []string
	for t.Start([]byte(text), 0); t.Next(); {
		found = append(found, string(t.Token.Text))
	}
	return strings.Join(found, "|")
}

func TestTokenizer(t *testing.T) {
	for text, want := range map[string]string{
		`foo_bar foo.bar x-y C++ a\-b 3.14 e-mail can't 12,345`: "foo_bar|foo|bar|x|y|c|a-b|3|14|e|mail|can|t|12|345",
		"":                         "",
		" \t,.":                    "",
		"a1\nb1":                   "a1b1",
		"a1\r\nb1 c1":              "a1b1|c1",
		"a1\tb1":                   "a1|b1",
		"one\x00two":               "one",
		"\x00":                     "",
		"\x01 one":                 "one",
		"\x01\x02":                 "",
		"one \x7f two":             "one|two",
		`\`:                        "",
		`one\`:                     "one",
		`one\ two`:                 "one two",
		"one\\\ttwo":               "onetwo",
		`one\\two`:                 `one\two`,
		`one\two`:                  "onetwo",
		`\-\-`:                     "--",
		"Ünïcode STRASSE Straße":   "ünïcode|strasse|straße",
		"ΣΊΣΥΦΟΣ ДОМ":              "σίσυφοσ|дом",
		"İstanbul":                 "i̇stanbul",
		"日本語 テスト":                  "日本語|テスト",
		"a╬b":                      "a╬b",
		"bad\xff\xfeBYTES":         "bad\xff\xfebytes",
		"héé,lo":                   "héé|lo",
		"a`b\"c<d>e?f|g^h&i*j=k+l": "a|b|c|d|e|f|g|h|i|j|k|l",
		"(a)[b]{c}:d;e~f!g@h#i$j%": "a|b|c|d|e|f|g|h|i|j",
	} {
		require.Equal(t, want, words(&Tokenizer{}, text), "%q", text)
	}
}

func TestStopwordsHaveNoPosition(t *testing.T) {
	tok := Tokenizer{Stopwords: English}
	var got []string
	text := "The quick AND\tBrown fox, a lazy d\xc3\x96g"
	for tok.Start([]byte(text), 0); tok.Next(); {
		got = append(got, fmt.Sprintf("%d %s %q", tok.Token.Position, tok.Token.Text, text[tok.Token.Start:tok.Token.End]))
	}
	require.Equal(t, []string{`1 quick "quick"`, `2 brown "Brown"`, `3 fox "fox"`, `4 lazy "lazy"`, `5 dög "dÖg"`}, got)

	custom := NewStopwords("Foo", "QUICK", "foo")
	require.Equal(t, []string{"foo", "quick"}, custom.Words())
	require.Equal(t, "the|brown", words(&Tokenizer{Stopwords: custom}, "the foo quick brown"))
	require.True(t, custom.HasString("fOO"))
	require.False(t, custom.HasString("the"))
	require.Equal(t, "the|foo", words(&Tokenizer{Stopwords: NewStopwords()}, "the foo"))
	require.Len(t, English.Words(), 33)
}

func TestPositionsGoOnInTheNextValue(t *testing.T) {
	var tok Tokenizer
	tok.Start([]byte("one two"), 0)
	require.True(t, tok.Next())
	require.True(t, tok.Next())
	require.False(t, tok.Next())
	tok.Start([]byte("three"), tok.Token.Position+100)
	require.True(t, tok.Next())
	require.Equal(t, 103, tok.Token.Position)
	require.Zero(t, tok.Token.Start)
}

func TestChineseHasAWordPerCharacter(t *testing.T) {
	require.Equal(t, "我|爱|redis|8|数|据|库|abc|中", words(&Tokenizer{Language: Chinese}, "我爱Redis 8，数据库abc中。"))
	require.Equal(t, []string{"我", "爱", "redis8", "数", "据", "库", "a-b"}, SplitChinese("我爱redis8，数据库。a-b"))
	require.Empty(t, SplitChinese("。"))
	require.Equal(t, "我爱redis|8，数据库。", words(&Tokenizer{}, "我爱Redis 8，数据库。"))
}

func TestSynonyms(t *testing.T) {
	var s Synonyms
	require.Empty(t, s.Groups([]byte("boy")))
	require.Empty(t, s.Update("g1", "Boy", "child"))
	require.Empty(t, s.Update("g3", "boy", "boy", "two words"))
	require.Empty(t, s.Update("g1", "boy"))
	require.Equal(t, []string{"~g1", "~g3"}, s.Groups([]byte("boy")))
	require.Equal(t, []string{"~g1"}, s.Groups([]byte("child")))
	require.Equal(t, 3, s.Len())
	for i := range MaxGroupsPerTerm {
		require.Empty(t, s.Update(fmt.Sprint(i), "many"))
	}
	require.Equal(t, "Maximum group IDs per term limit reached", s.Update("more", "new", "many"))
	require.Empty(t, s.Groups([]byte("new")), "a refused update changes nothing")
	n := 0
	s.All(func(string, []string) bool { n++; return n < 3 })
	require.Equal(t, 3, n)
}

func TestMetaphone(t *testing.T) {
	for word, want := range map[string]string{
		// Codes that a server gave.
		"smith": "SM0", "schmidt": "XMT", "jon": "JN", "john": "JN", "wright": "RT", "knight": "NT", "philip": "FLP", "thomas": "TMS",
		"xavier": "SF", "caesar": "SSR", "church": "XRX", "chianti": "KNT", "bough": "P", "laugh": "LF", "queen": "KN", "zebra": "SPR",
		"hugh": "H", "gnome": "NM", "pneumonia": "NMN", "rite": "RT", "smyth": "SM0", "catherine": "K0RN", "katherine": "K0RN",
		// Examples of the author and common ones.
		"michael": "MKL", "chemistry": "KMST", "chorus": "KRS", "architect": "ARKT", "edge": "AJ", "edgar": "ATKR", "ghost": "KST",
		"cough": "KF", "tough": "TF", "night": "NT", "dumb": "TM", "thumb": "0M", "sugar": "XKR", "island": "ALNT", "school": "SKL",
		"nation": "NXN", "science": "SNS", "accident": "AKST", "bacchus": "PKS", "bertucci": "PRTX", "tagliaro": "TKLR", "cagney": "KKN",
		"jose": "HS", "breaux": "PR", "artois": "ART", "zhao": "J", "filipowicz": "FLPT", "rogier": "RJ", "mclaughlin": "MKLF", "czerny": "SRN",
		"wasserman": "ASRM", "whiskey": "ASK", "ranger": "RNJR", "finger": "FNKR", "biaggi": "PJ", "bach": "PK", "": "", "é": "", "a": "A",
	} {
		require.Equal(t, want, string(AppendMetaphone(nil, []byte(word))), word)
	}
	require.Equal(t, "<SM0", string(AppendMetaphone([]byte(Sound), []byte("smith"))))
}

func TestLanguages(t *testing.T) {
	n := 0
	for i := range languages {
		l, ok := ParseLanguage(strings.ToUpper(languages[i].name))
		require.True(t, ok)
		require.Equal(t, languages[i].name, l.String())
		if l.Stems() {
			n++
		}
	}
	require.Equal(t, 31, len(languages))
	require.Equal(t, 20, n)
	for _, name := range []string{"", "klingon", "english "} {
		_, ok := ParseLanguage(name)
		require.False(t, ok, name)
	}
	english, _ := ParseLanguage("English")
	require.Zero(t, english)
}

func TestStemmer(t *testing.T) {
	s := NewStemmer(0)
	for range 2 { // computed, remembered
		for word, want := range map[string]string{"running": "run", "hello": "hello", "news": "news", "": ""} {
			stem, ok := s.Stem([]byte(word))
			require.Equal(t, want, stem)
			require.Equal(t, word != "", ok)
		}
	}
	_, ok := s.Stem([]byte("bad\xff"))
	require.False(t, ok)
	stem, ok := s.Stem([]byte(strings.Repeat("long", 20) + "running"))
	require.True(t, ok)
	require.Equal(t, strings.Repeat("long", 20)+"run", stem)
	yiddish, _ := ParseLanguage("yiddish")
	_, ok = NewStemmer(yiddish).Stem([]byte("running"))
	require.False(t, ok)
}

func TestStemsOfIndonesianAndMalay(t *testing.T) {
	for word, want := range map[string]string{
		"perniagaan": "niaga", "berniaga": "niaga", "keselamatan": "selamat", "selamat": "selamat", "bukumu": "buku", "bacalah": "baca",
		"bukukah": "buku", "celananya": "celana", "menyapu": "sapu", "penyapu": "sapu", "memakai": "paka", "membaca": "baca",
		"pelajaran": "ajar", "belajar": "ajar", "pekerjaan": "kerja", "bekerja": "kerja", "televisi": "televisi", "makanan": "makan",
		"peledakan": "ledak", "perbaikan": "baik", "mengambil": "ambil", "": "",
	} {
		for _, name := range []string{"indonesian", "malay"} {
			l, ok := ParseLanguage(name)
			require.True(t, ok)
			stem, ok := NewQueryStemmer(l).Stem([]byte(word))
			require.Equal(t, want, stem, word)
			require.Equal(t, word != "", ok, word)
		}
	}
}

// No text and no word may stop the server, in no language.
func FuzzText(f *testing.F) {
	f.Add([]byte("The quick\\-brown fox\x00İ"), uint8(0))
	f.Add([]byte("我爱Redis，数据库"), uint8(Chinese))
	f.Fuzz(func(t *testing.T, text []byte, language uint8) {
		l := Language(language) % Language(len(languages))
		tok, stemmer := Tokenizer{Stopwords: English, Language: l}, NewStemmer(l)
		position, end := 0, 0
		for tok.Start(text, 0); tok.Next(); {
			require.Equal(t, position+1, tok.Token.Position)
			require.NotEmpty(t, tok.Token.Text)
			require.GreaterOrEqual(t, tok.Token.Start, end)
			require.Greater(t, tok.Token.End, tok.Token.Start)
			require.LessOrEqual(t, tok.Token.End, len(text))
			position, end = tok.Token.Position, tok.Token.End
			stem, ok := stemmer.Stem(tok.Token.Text)
			require.False(t, ok && !utf8.ValidString(stem))
			require.LessOrEqual(t, len(AppendMetaphone(nil, tok.Token.Text)), soundLength)
		}
	})
}

const document = "The quick brown fox was running and jumping over a lazy dog, while every connection of the network connects " +
	"connected computers quickly; said the programmer. History of the world is long and the world forgets: deep forests hide " +
	"quick Foxes, programs and programmers"

func BenchmarkTokenizer(b *testing.B) {
	tok := Tokenizer{Stopwords: English}
	text := []byte(document)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for tok.Start(text, 0); tok.Next(); {
			n++
		}
	}
}

// The stems of a document, which are remembered after the first time.
func BenchmarkStems(b *testing.B) {
	tok, stemmer := Tokenizer{Stopwords: English}, NewStemmer(0)
	text := []byte(document)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for tok.Start(text, 0); tok.Next(); {
			word := tok.Token.Text
			if len(word) < MinStem {
				continue
			}
			if stem, ok := stemmer.Stem(word); ok && stem != string(word) {
				n++
			}
		}
	}
}

func BenchmarkStemOfANewWord(b *testing.B) {
	stemmer := NewStemmer(0)
	b.ReportAllocs()
	for b.Loop() {
		stemmer.compute("connections")
	}
}

func BenchmarkMetaphone(b *testing.B) {
	word, code := []byte("programmers"), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		code = AppendMetaphone(code[:0], word)
	}
}
