package transport

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListsOfGroupsAreReadAsOpenSSLDoes(t *testing.T) {
	for list, want := range map[string][]tls.CurveID{
		"X25519":                                 {tls.X25519},
		"x25519:P-256:prime256v1:secp256r1":      {tls.X25519, tls.CurveP256},
		"?ffdhe2048:P-521":                       {tls.CurveP521},
		"?*X25519MLKEM768:*SecP256r1MLKEM768":    {tls.X25519MLKEM768, tls.SecP256r1MLKEM768},
		"SecP384r1MLKEM1024/secp384r1:secp521r1": {tls.SecP384r1MLKEM1024, tls.CurveP384, tls.CurveP521},
	} {
		got, err := Groups(list)
		require.NoError(t, err, list)
		require.Equal(t, want, got, list)
	}
	for _, list := range []string{"", ":", "?x448"} {
		_, err := Groups(list)
		require.Equal(t, errNoGroup, err, list)
	}
	for _, list := range []string{"x448", "X25519:none", "X25519:*"} {
		_, err := Groups(list)
		require.ErrorContains(t, err, "the server has no group", list)
	}
}
