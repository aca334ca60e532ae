package transport

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListsOfCiphersAreReadAsOpenSSLDoes(t *testing.T) {
	names := func(ids []uint16) (list []string) {
		for _, s := range suites {
			if slices.Contains(ids, s.id) {
				list = append(list, s.name)
			}
		}
		slices.Sort(list)
		return list
	}
	for list, want := range map[string]string{
		"ECDHE-RSA-AES128-GCM-SHA256":                             "ECDHE-RSA-AES128-GCM-SHA256",
		"DHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
		"ECDHE+AESGCM:!aRSA":                                      "ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384",
		"HIGH:!aNULL:!kRSA:-AES128:!SHA384:!SHA":                  "ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-AES256-GCM-SHA384 ECDHE-RSA-CHACHA20-POLY1305",
		"kRSA+AES256":                                             "AES256-GCM-SHA384 AES256-SHA",
		"MEDIUM:!RC4":                                             "DES-CBC3-SHA ECDHE-RSA-DES-CBC3-SHA",
		"AES128-SHA256, TLS_RSA_WITH_AES_128_CBC_SHA":             "AES128-SHA AES128-SHA256",
		"ECDHE+CHACHA20:@STRENGTH:!ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
	} {
		ids, err := CipherSuites(list)
		require.NoError(t, err, list)
		require.Equal(t, strings.Fields(want), names(ids), list)
	}
	ids, err := CipherSuites("DEFAULT:!MEDIUM")
	require.NoError(t, err)
	require.Contains(t, names(ids), "ECDHE-ECDSA-AES128-SHA")
	require.NotContains(t, names(ids), "RC4-SHA")
	for _, list := range []string{"x", "", "DHE", "ECDHE:!ALL", "TLS_AES_128_GCM_SHA256", "!", "eNULL"} {
		_, err := CipherSuites(list)
		require.Equal(t, errNoCipher, err, list)
	}
	require.NoError(t, CheckTLS13Suites("TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256"))
	require.ErrorContains(t, CheckTLS13Suites("TLS_CHACHA20_POLY1305_SHA256"),
		"TLS 1.3 always has TLS_AES_128_GCM_SHA256 here")
}
