package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// groups are the groups of key exchange that crypto/tls has, by their names in OpenSSL, in small letters.
var groups = map[string]tls.CurveID{
	"x25519":             tls.X25519,
	"p-256":              tls.CurveP256,
	"prime256v1":         tls.CurveP256,
	"secp256r1":          tls.CurveP256,
	"p-384":              tls.CurveP384,
	"secp384r1":          tls.CurveP384,
	"p-521":              tls.CurveP521,
	"secp521r1":          tls.CurveP521,
	"x25519mlkem768":     tls.X25519MLKEM768,
	"secp256r1mlkem768":  tls.SecP256r1MLKEM768,
	"secp384r1mlkem1024": tls.SecP384r1MLKEM1024,
}

var errNoGroup = errors.New("the server has none of these groups")

// Groups returns the groups of key exchange that a list allows. The list has OpenSSL's form: names separated by
// colons or, as of 3.5, slashes. Unknown names are allowed after "?". "*" and the order are ignored, because
// crypto/tls has its own.
func Groups(list string) (allowed []tls.CurveID, err error) {
	for _, word := range strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == '/' }) {
		name := strings.TrimLeft(word, "?*")
		group, known := groups[strings.ToLower(name)]
		switch {
		case known && !slices.Contains(allowed, group):
			allowed = append(allowed, group)
		case !known && !strings.Contains(word[:len(word)-len(name)], "?"):
			return nil, fmt.Errorf("the server has no group %q", name)
		}
	}
	if len(allowed) == 0 {
		return nil, errNoGroup
	}
	return allowed, nil
}
