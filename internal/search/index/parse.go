package index

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/atomredis/atomredis/engine/geo"
	"github.com/atomredis/atomredis/internal/search/query"
)

// parseNumber reads a number as C's strtod reads a whole text: also infinite and hexadecimal ones, no blanks, not nan.
func parseNumber(b []byte) (float64, bool) {
	s := string(b)
	if s == "" || strings.ContainsAny(s, "_ \t\r\n\v\f") {
		return 0, false
	}
	if i := strings.IndexAny(s, "xX"); i >= 0 && !strings.ContainsAny(s, "pP") {
		s += "p0"
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil && !math.IsNaN(f)
}

// parsePlace reads a longitude and a latitude, with blanks around each, and returns their score in a tree of numbers.
func parsePlace(b []byte) (score float64, failure string) {
	i := bytes.IndexAny(b, ", ")
	if i < 0 {
		return 0, query.BadArguments.With("Invalid geo string: missing separator")
	}
	lon, ok := parseNumber(bytes.TrimSpace(b[:i]))
	if !ok {
		return 0, query.BadPlace(string(b[:i])).Error()
	}
	lat, ok := parseNumber(bytes.TrimSpace(b[i+1:]))
	if !ok {
		return 0, query.BadPlace(string(b[i+1:])).Error()
	}
	if math.Abs(lon) > geo.MaxLon || math.Abs(lat) > geo.MaxLat {
		return 0, query.BadCoordinates.With(fmt.Sprintf("Invalid geo coordinates: %f, %f", lon, lat))
	}
	return float64(geo.Position{Lon: lon, Lat: lat}.Score()), ""
}

// SortForm returns the sort key of a text: each character in lower case.
func SortForm(b []byte) string {
	var out strings.Builder
	for _, r := range string(b) {
		switch r {
		case 'ß', 'ẞ':
			out.WriteString("ss")
		default:
			out.WriteRune(unicode.ToLower(r))
		}
	}
	return out.String()
}

// cutByte splits a text at a byte; 0 is no byte.
func cutByte(b []byte, separator byte) (before, after []byte, found bool) {
	if separator == 0 {
		return b, nil, false
	}
	if i := bytes.IndexByte(b, separator); i >= 0 {
		return b[:i], b[i+1:], true
	}
	return b, nil, false
}

func trimBlanks(b []byte) []byte { return bytes.Trim(b, " \t\r\n\v\f") }

// badNumber is the error for a text that is no number.
func badNumber(b []byte) string {
	return query.NotNumeric.With("Invalid numeric value: '" + string(b) + "'")
}

// badVectorSize is the error for a vector of the wrong size.
func badVectorSize(is, want int) string {
	return query.BadVectorSize.With(fmt.Sprintf("Could not add vector with blob size %d (expected size %d)", is, want))
}
