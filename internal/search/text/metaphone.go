package text

import (
	"bytes"
	"strings"
)

// soundLength is how many letters a code has at most.
const soundLength = 4

// AppendMetaphone appends the code of a word's sound: the primary code of Double Metaphone (Lawrence Philips, 2000), up to four
// letters, 0 for th and X for sh. Words that sound alike in English have the same code; letters outside ASCII are silent. The code
// may be empty.
func AppendMetaphone(dst, word []byte) []byte {
	var room [64]byte
	m := metaphone{word: appendUpper(room[:0], word), out: dst, begin: len(dst)}
	m.slavoGermanic = bytes.ContainsAny(m.word, "WK") || bytes.Contains(m.word, []byte("CZ"))
	if m.any(0, "GN", "KN", "PN", "WR", "PS") {
		m.at = 1 // the first letter is silent
	}
	if m.letter(0) == 'X' { // Xavier
		m.code("S")
		m.at = 1
	}
	for m.at < len(m.word) && len(m.out)-m.begin < soundLength {
		m.step()
	}
	return m.out[:min(len(m.out), m.begin+soundLength)]
}

// metaphone is a word on its way to its code.
type metaphone struct {
	word          []byte // in capitals
	at            int    // the letter that is next
	out           []byte
	begin         int  // of the code in out
	slavoGermanic bool // looks like a name from Central or Eastern Europe
}

// appendUpper appends a word in ASCII capitals.
func appendUpper(dst, word []byte) []byte {
	for _, c := range word {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// letter returns a letter of the word, 0 outside of it.
func (m *metaphone) letter(i int) byte {
	if i < 0 || i >= len(m.word) {
		return 0
	}
	return m.word[i]
}

// any reports whether one of some texts stands at a place of the word.
func (m *metaphone) any(i int, texts ...string) bool {
	if i < 0 || i >= len(m.word) {
		return false
	}
	for _, s := range texts {
		if rest := m.word[i:]; len(rest) >= len(s) && string(rest[:len(s)]) == s {
			return true
		}
	}
	return false
}

// oneOf reports whether the letter at a place is among some.
func (m *metaphone) oneOf(i int, letters string) bool {
	c := m.letter(i)
	return c != 0 && strings.IndexByte(letters, c) >= 0
}

// vowel reports whether a vowel stands at a place.
func (m *metaphone) vowel(i int) bool { return m.oneOf(i, "AEIOUY") }

// germanic reports whether the word begins like a Dutch or German name.
func (m *metaphone) germanic() bool { return m.any(0, "VAN ", "VON ", "SCH") }

// last is the place of the last letter.
func (m *metaphone) last() int { return len(m.word) - 1 }

// code adds to the code.
func (m *metaphone) code(s string) { m.out = append(m.out, s...) }

// take adds to the code for some letters of the word.
func (m *metaphone) take(s string, letters int) {
	m.code(s)
	m.at += letters
}

// double takes a letter, or two when it is written twice.
func (m *metaphone) double(s string, also string) {
	n := 1
	if m.oneOf(m.at+1, also) {
		n = 2
	}
	m.take(s, n)
}

// step takes the next letters.
func (m *metaphone) step() {
	switch c := m.word[m.at]; c {
	case 'A', 'E', 'I', 'O', 'U', 'Y':
		if m.at == 0 {
			m.code("A")
		}
		m.at++
	case 'B':
		m.double("P", "B")
	case 'C':
		m.c()
	case 'D':
		m.d()
	case 'F', 'K', 'N':
		m.double(string(c), string(c))
	case 'G':
		m.g()
	case 'H':
		if (m.at == 0 || m.vowel(m.at-1)) && m.vowel(m.at+1) {
			m.take("H", 2)
		} else {
			m.at++
		}
	case 'J':
		m.j()
	case 'L':
		m.double("L", "L")
	case 'M':
		n := 1
		if m.letter(m.at+1) == 'M' || m.any(m.at-1, "UMB") && (m.at+1 == m.last() || m.any(m.at+2, "ER")) { // dumb, thumber
			n = 2
		}
		m.take("M", n)
	case 'P':
		if m.letter(m.at+1) == 'H' {
			m.take("F", 2)
		} else {
			m.double("P", "PB")
		}
	case 'Q':
		m.double("K", "Q")
	case 'R':
		// The last letter of French names such as Rogier is silent.
		if m.at == m.last() && !m.slavoGermanic && m.any(m.at-2, "IE") && !m.any(m.at-4, "ME", "MA") {
			m.at++
		} else {
			m.double("R", "R")
		}
	case 'S':
		m.s()
	case 'T':
		m.t()
	case 'V':
		m.double("F", "V")
	case 'W':
		m.w()
	case 'X':
		// Silent at the end of French words: breaux.
		if !(m.at == m.last() && (m.any(m.at-3, "IAU", "EAU") || m.any(m.at-2, "AU", "OU"))) {
			m.code("KS")
		}
		m.double("", "CX")
	case 'Z':
		if m.letter(m.at+1) == 'H' { // Zhao
			m.take("J", 2)
		} else {
			m.double("S", "Z")
		}
	default:
		m.at++
	}
}

func (m *metaphone) c() {
	at := m.at
	switch {
	case at > 1 && !m.vowel(at-2) && m.any(at-1, "ACH") && m.letter(at+2) != 'I' &&
		(m.letter(at+2) != 'E' || m.any(at-2, "BACHER", "MACHER")): // Bach
		m.take("K", 2)
	case at == 0 && m.any(0, "CAESAR"):
		m.take("S", 2)
	case m.any(at, "CHIA"): // chianti
		m.take("K", 2)
	case m.any(at, "CH"):
		m.ch()
	case m.any(at, "CZ") && !m.any(at-2, "WICZ"): // Czerny
		m.take("S", 2)
	case m.any(at+1, "CIA"): // focaccia
		m.take("X", 3)
	case m.any(at, "CC") && !(at == 1 && m.letter(0) == 'M'): // but not McClelland
		switch {
		case !m.oneOf(at+2, "IEH") || m.any(at+2, "HU"): // bacchus
			m.take("K", 2)
		case at == 1 && m.letter(0) == 'A' || m.any(at-1, "UCCEE", "UCCES"): // accident, success
			m.take("KS", 3)
		default: // bertucci
			m.take("X", 3)
		}
	case m.any(at, "CK", "CG", "CQ"):
		m.take("K", 2)
	case m.any(at, "CI", "CE", "CY"):
		m.take("S", 2)
	case m.any(at+1, " C", " Q", " G"): // Mac Gregor
		m.take("K", 3)
	case m.oneOf(at+1, "CKQ") && !m.any(at+1, "CE", "CI"):
		m.take("K", 2)
	default:
		m.take("K", 1)
	}
}

func (m *metaphone) ch() {
	at := m.at
	switch {
	case at > 0 && m.any(at, "CHAE"): // Michael
		m.take("K", 2)
	case at == 0 && (m.any(1, "HARAC", "HARIS", "HOR", "HYM", "HIA", "HEM")) && !m.any(0, "CHORE"): // chemistry, chorus
		m.take("K", 2)
	case m.germanic() || m.any(at-2, "ORCHES", "ARCHIT", "ORCHID") || m.oneOf(at+2, "TS") ||
		(m.oneOf(at-1, "AOUE") || at == 0) && (m.oneOf(at+2, "LRNMBHFVW ") || at+2 > m.last()): // Wachtler, Wechsler, but not Tichner
		m.take("K", 2)
	case at > 0 && m.any(0, "MC"): // McHugh
		m.take("K", 2)
	default:
		m.take("X", 2)
	}
}

func (m *metaphone) d() {
	switch {
	case m.any(m.at, "DG") && m.oneOf(m.at+2, "IEY"): // edge
		m.take("J", 3)
	case m.any(m.at, "DG"): // Edgar
		m.take("TK", 2)
	default:
		m.double("T", "TD")
	}
}

func (m *metaphone) g() {
	at := m.at
	switch next := m.letter(at + 1); {
	case next == 'H':
		m.gh()
	case next == 'N':
		switch {
		case at == 1 && m.vowel(0) && !m.slavoGermanic:
			m.take("KN", 2)
		case !m.any(at+2, "EY") && !m.slavoGermanic: // not Cagney
			m.take("N", 2)
		default:
			m.take("KN", 2)
		}
	case m.any(at+1, "LI") && !m.slavoGermanic: // tagliaro
		m.take("KL", 2)
	case at == 0 && (next == 'Y' || m.any(1, "ES", "EP", "EB", "EL", "EY", "IB", "IL", "IN", "IE", "EI", "ER")):
		m.take("K", 2)
	case (m.any(at+1, "ER") || next == 'Y') && !m.any(0, "DANGER", "RANGER", "MANGER") && !m.oneOf(at-1, "EI") &&
		!m.any(at-1, "RGY", "OGY"): // finger
		m.take("K", 2)
	case m.oneOf(at+1, "EIY") || m.any(at-1, "AGGI", "OGGI"): // biaggi
		if m.germanic() || m.any(at+1, "ET") {
			m.take("K", 2)
		} else {
			m.take("J", 2)
		}
	default:
		m.double("K", "G")
	}
}

func (m *metaphone) gh() {
	at := m.at
	switch {
	case at > 0 && !m.vowel(at-1): // Burgh
		m.take("K", 2)
	case at == 0 && m.letter(2) == 'I': // Ghislane
		m.take("J", 2)
	case at == 0: // ghost
		m.take("K", 2)
	case m.oneOf(at-2, "BHD") || m.oneOf(at-3, "BHD") || m.oneOf(at-4, "BH"): // Hugh, bough, Broughton
		m.at += 2
	case at > 2 && m.letter(at-1) == 'U' && m.oneOf(at-3, "CGLRT"): // laugh, McLaughlin, cough, rough, tough
		m.take("F", 2)
	case m.letter(at-1) != 'I':
		m.take("K", 2)
	default: // night
		m.at += 2
	}
}

func (m *metaphone) j() {
	at := m.at
	if m.any(at, "JOSE") || m.any(0, "SAN ") {
		if at == 0 && (m.letter(4) == ' ' || len(m.word) == 4) || m.any(0, "SAN ") {
			m.code("H")
		} else {
			m.code("J")
		}
		m.at++
		return
	}
	switch {
	case at == 0: // Jankelowicz
		m.code("J")
	case m.vowel(at-1) && !m.slavoGermanic && m.oneOf(at+1, "AO"): // bajador
		m.code("J")
	case at == m.last():
		m.code("J")
	case !m.oneOf(at+1, "LTKSNMBZ") && !m.oneOf(at-1, "SKL"):
		m.code("J")
	}
	m.double("", "J")
}

func (m *metaphone) s() {
	at := m.at
	switch {
	case m.any(at-1, "ISL", "YSL"): // island
		m.at++
	case at == 0 && m.any(0, "SUGAR"):
		m.take("X", 1)
	case m.any(at, "SH"):
		if m.any(at+1, "HEIM", "HOEK", "HOLM", "HOLZ") { // Bernsheim
			m.take("S", 2)
		} else {
			m.take("X", 2)
		}
	case m.any(at, "SIO", "SIA"): // fusion
		m.take("S", 3)
	case at == 0 && m.oneOf(1, "MNLW") || m.letter(at+1) == 'Z': // Smith and Schmidt share their secondary code only
		m.double("S", "Z")
	case m.any(at, "SC"):
		m.sc()
	case at == m.last() && m.any(at-2, "AI", "OI"): // the silent end of French words: Artois
		m.double("", "SZ")
	default:
		m.double("S", "SZ")
	}
}

func (m *metaphone) sc() {
	at := m.at
	switch {
	case m.letter(at+2) == 'H' && m.any(at+3, "OO", "ER", "EN", "UY", "ED", "EM"): // school
		if m.any(at+3, "ER", "EN") { // Schenker
			m.take("X", 3)
		} else {
			m.take("SK", 3)
		}
	case m.letter(at+2) == 'H':
		m.take("X", 3)
	case m.oneOf(at+2, "IEY"): // science
		m.take("S", 3)
	default:
		m.take("SK", 3)
	}
}

func (m *metaphone) t() {
	at := m.at
	switch {
	case m.any(at, "TION", "TIA", "TCH"):
		m.take("X", 3)
	case m.any(at, "TH", "TTH"):
		if m.any(at+2, "OM", "AM") || m.germanic() { // Thomas, Thames
			m.take("T", 2)
		} else {
			m.take("0", 2)
		}
	default:
		m.double("T", "TD")
	}
}

func (m *metaphone) w() {
	at := m.at
	switch {
	case m.any(at, "WR"):
		m.take("R", 2)
	case at == 0 && (m.vowel(1) || m.any(0, "WH")): // Wasserman, Whiskey
		m.take("A", 1)
	case at == m.last() && m.vowel(at-1), m.any(at-1, "EWSKI", "EWSKY", "OWSKI", "OWSKY"), m.any(0, "SCH"):
		// Arnow: only the secondary code has it.
		m.at++
	case m.any(at, "WICZ", "WITZ"): // Filipowicz
		m.take("TS", 4)
	default:
		m.at++
	}
}
