// The rules by which commands are made.

package searches

import (
	"strconv"
	"strings"
)

// grammar has the alternatives of each rule. A line is a weight, with @2 after it for dialects from 2 on, and a text.
// In the rules for arguments (names in capitals) each word is an argument: +RULE is several arguments by another rule,
// #RULE is one to three times another rule, after their number. <<name>> is a rule within an argument, or a name that
// fill knows. The first line of a recursive rule is not recursive.
var grammar = map[string]string{
	"COMMAND": `
60 FT.SEARCH idx <<query>> +SEARCHOPTIONS
30 FT.AGGREGATE idx <<query>> +AGGREGATEOPTIONS +STEPS
5 FT.EXPLAIN idx <<query>>
1 FT.EXPLAINCLI idx <<query>>
1 FT.SPELLCHECK idx <<words>> +SPELLING
1 FT.TAGVALS idx <<tagfield>>`,

	"query": `
40 <<expr>>
3 *
5@2 <<expr>>=>[KNN <<k>> @<<vectorfield>> $vec<<knnoptions>>]
4@2 *=>[KNN <<k>> @<<vectorfield>> $vec]
2@2 *=>[KNN <<k>> @<<vectorfield>> $vec AS dist]
2@2 (<<expr>>)=>[KNN <<k>> @<<vectorfield>> $vec]=>{$yield_distance_as: dist}`,
	"k":          "5 3\n5 10\n1 0\n1 100\n1 $k",
	"knnoptions": "5 <<nothing>>\n3  AS dist\n1  HYBRID_POLICY ADHOC_BF\n1  HYBRID_POLICY BATCHES BATCH_SIZE 5",
	"nothing":    "1",

	"expr": `
20 <<word>>
6 <<expr>> <<expr>>
4 (<<expr>>)
4 <<expr>>|<<expr>>
2 <<expr>> | <<expr>>
4 @<<textfield>>:<<text>>
2 @<<textfield>>|<<textfield>>:<<text>>
4 @<<textfield>>:(<<textexpr>>)
6 @<<tagfield>>:{<<tags>>}
6 @<<numericfield>>:[<<range>>]
2 @<<geofield>>:[<<geo>>]
3 -<<unit>>
3 ~<<unit>>
4 <<text>>
3 (<<expr>>)=>{<<attributes>>}
2 <<word>>=>{<<attributes>>}
2@2 @<<numericfield>><<compare>><<number>>
1@2 @<<numericfield>>:[<<number>>]
1@2 ismissing(@<<anyfield>>)
1@2 @<<textfield>>:""
1@2 @<<tagfield>>:{""}
1@2 @<<textfield>>:$word
1@2 $word
1@2 @<<vectorfield>>:[VECTOR_RANGE <<radius>> $vec]
1@2 @<<vectorfield>>:[VECTOR_RANGE <<radius>> $vec]=>{$yield_distance_as: dist}`,
	"unit":     "5 <<word>>\n3 (<<expr>>)\n2 @<<tagfield>>:{<<tags>>}\n1 @<<numericfield>>:[<<range>>]\n1 <<text>>",
	"textexpr": "5 <<text>>\n2 <<text>> <<textexpr>>\n2 <<text>>|<<textexpr>>\n1 -<<word>>\n1 ~<<word>>\n1 (<<textexpr>>)",
	"text": `
10 <<word>>
4 "<<words>>"
2 <<prefix>>*
1 *<<suffix>>
1 *<<suffix>>*
2 %<<word>>%
1 %%<<word>>%%
1 %%%<<word>>%%%
1@2 '<<words>>'
1@2 w'<<wild>>'`,
	"words":  "3 <<word>>\n4 <<word>> <<word>>\n2 <<word>> <<word>> <<word>>",
	"prefix": "5 he\n3 run\n3 wor\n2 ca\n2 fo\n1 h\n1 qui\n1 WO\n1 ün",
	"suffix": "5 er\n3 ing\n3 ld\n2 at\n2 s\n1 word\n1 nc",
	"wild":   "3 *o*\n3 ?at*\n2 h?l*\n2 *\n1 wor??\n1 ru*n*\n1 ???",
	"tags":   "10 <<tagvalue>>\n4 <<tagvalue>>|<<tagvalue>>\n2 <<tagvalue>> | <<tagvalue>>",
	"tagvalue": `
5 red
3 blue
2 Red
2 dark red
2 a\-b
2 a1
1 <<word>>
1 re*
1 *d
1 *e*
1 12
1@2 "a-b"
1@2 'dark red'
1@2 $tag
1@2 w'r?d*'`,
	"range":      "8 <<number>> <<number>>\n5 -inf <<number>>\n5 <<number>> +inf\n3 (<<number>> <<number>>\n2 <<number>> (<<number>>\n1 (<<number>> (inf\n1 0 20\n1@2 $num 15\n1 <<number>>,<<number>>",
	"geo":        "4 13.5 52.5 <<radius>> km\n2 14 53 50 km\n1 13.5 52.5 <<radius>> mi\n1 13.2 52.2 90000 m\n1 13.4 52.9 100000 ft\n1@2 $lon 52.5 60 km",
	"compare":    "1 ==\n1 !=\n1 <\n1 <=\n1 >\n1 >=",
	"radius":     "4 60\n2 100\n1 500\n1 0.5",
	"attributes": "4 $weight: <<weight>>\n2 $slop: <<slop>>\n2 $slop: <<slop>>; $inorder: <<bool>>\n1 $inorder: <<bool>>; $weight: <<weight>>;\n1 $phonetic: <<bool>>\n1@9 $foo: 1",
	"weight":     "3 2\n2 0.5\n1 0\n1 3.25",
	"slop":       "2 0\n2 1\n1 3\n1 -1",
	"bool":       "1 true\n1 false",

	"PARAMS": "1 PARAMS 10 vec <<vector>> k <<small>> word <<word>> tag <<tagvalue>> num <<number>>\n1 PARAMS 12 vec <<vector>> k 5 word hello tag red num 3 lon 13.4",

	"SEARCHOPTIONS": "10 +PAGE\n10 +SEARCHOPTION\n8 +SEARCHOPTION +SEARCHOPTION\n4 +SEARCHOPTION +SEARCHOPTION +SEARCHOPTION\n5 NOCONTENT WITHSCORES +SCORER LIMIT 0 100\n5 NOCONTENT SORTBY <<sortfield>> <<direction>> LIMIT 0 100",
	"PAGE":          "1\n1 LIMIT 0 100",
	"SEARCHOPTION": `
5 NOCONTENT
5 LIMIT <<small>> <<count>>
2 LIMIT 0 0
6 SORTBY <<sortfield>>
4 SORTBY <<sortfield>> <<direction>>
1@9 SORTBY dist
1@9 SORTBY __v1_score
6 RETURN #RETURNED
1 RETURN 0
5 WITHSCORES
5 WITHSCORES +SCORER
3 WITHSCORES EXPLAINSCORE
3 WITHSCORES EXPLAINSCORE +SCORER
1 WITHPAYLOADS
2 WITHSORTKEYS
2 VERBATIM
1 NOSTOPWORDS
2 INKEYS #KEY
2 INFIELDS #FIELD
3 SLOP <<slop>>
2 SLOP <<slop>> INORDER
1 INORDER
2 LANGUAGE <<language>>
1 EXPANDER <<expander>>
2 FILTER <<numericfield>> <<bound>> <<bound>>
2 GEOFILTER <<geofield>> 13.5 52.5 <<radius>> km
3 HIGHLIGHT
3 SUMMARIZE
2 HIGHLIGHT FIELDS #TEXTFIELD
2 HIGHLIGHT TAGS [ ]
2 HIGHLIGHT FIELDS #TEXTFIELD TAGS [[ ]]
2 SUMMARIZE FIELDS #TEXTFIELD
2 SUMMARIZE FRAGS <<small>> LEN <<small>>
2 SUMMARIZE FIELDS #TEXTFIELD FRAGS 2 LEN 5 SEPARATOR |
2 SUMMARIZE LEN 4 HIGHLIGHT
1 TIMEOUT 10000`,
	"SCORER": `
4 SCORER BM25STD
2 SCORER TFIDF
2 SCORER TFIDF.DOCNORM
2 SCORER BM25
2 SCORER DISMAX
1 SCORER DOCSCORE
1 SCORER HAMMING PAYLOAD <<payload>>
1 SCORER BM25STD.TANH
1 SCORER BM25STD.TANH BM25STD_TANH_FACTOR <<small>>
1 SCORER BM25STD.NORM
1@9 SCORER nope`,
	"payload":   "1 aaaa\n1 abcd\n1 x",
	"RETURNED":  "10 <<anyfield>>\n2 <<anyfield>> AS <<alias>>\n1 __key\n1 other\n1 nope\n1 dist",
	"alias":     "1 one\n1 two\n1 three",
	"KEY":       "5 <<key>>\n1 nope",
	"FIELD":     "5 <<textfield>>\n1 nope\n1 n1",
	"TEXTFIELD": "1 <<textfield>>",
	"language":  "3 english\n2 german\n1 french\n1 klingon",
	"expander":  "1 SBSTEM\n1 SYNONYM\n1 nope",
	"bound":     "4 <<number>>\n1 -inf\n1 +inf\n1 (<<number>>\n1 x",
	"direction": "1 ASC\n1 DESC",
	"sortfield": "10 <<sortablefield>>\n2 <<scalarfield>>",
	"small":     "3 1\n3 2\n3 3\n2 5\n1 10\n1 0",
	"SPELLING":  "3 DISTANCE 1\n2 DISTANCE 2\n1 DISTANCE 5\n1 TERMS INCLUDE nodict",

	"AGGREGATEOPTIONS": `
20
4 VERBATIM
3 ADDSCORES
1 ADDSCORES SCORER BM25STD.TANH
1 ADDSCORES SCORER DOCSCORE
3 WITHCURSOR
3 WITHCURSOR COUNT <<small>>
1 INKEYS #KEY`,
	"STEPS": `
10 +LOAD +ROWSTEPS
5 +ROWSTEPS
5 +LOAD +ROWSTEPS +GROUP
5 +GROUP
3 +LOAD +APPLY +GROUP
2 +LOAD APPLY <<value>> AS a1 GROUPBY 1 @a1 +REDUCERS`,
	"LOAD": "10 LOAD 3 @n1 @g1 @t1\n8 LOAD #LOADED\n2 LOAD 1 @__key\n2 LOAD *",
	"LOADED": `
10 @<<anyfield>>
2 <<anyfield>>
1 @<<anyfield>> AS <<alias>>
1 @other`,
	"ROWSTEPS": "4 +ROWSTEP\n2 +ROWSTEP +ROWSTEP\n4 +SORTSTEP\n4 +ROWSTEP +SORTSTEP\n2 +SORTSTEP +ROWSTEP\n1@9 +SORTSTEP +SORTSTEP",
	"ROWSTEP": `
5 +APPLY
3 FILTER <<cond>>
2 LIMIT <<small>> <<count>>
1 LIMIT 0 0`,
	"SORTSTEP": "3 SORTBY #SORTED\n2 SORTBY #SORTED MAX <<count>>\n2 SORTBY #SORTED LIMIT <<small>> <<count>>",
	"count":    "3 1\n3 2\n3 4\n1 100",
	"SORTED":   "3 @<<sortfield>>\n3 @<<sortfield>> <<direction>>\n1@9 @a1 <<direction>>\n1@9 @__key",
	"APPLY":    "8 APPLY <<value>> AS <<applied>>\n1 APPLY <<value>>",
	"applied":  "3 a1\n3 a2",
	"GROUP": `
5 GROUPBY 1 @g1 +REDUCERS SORTBY 2 @g1 ASC LIMIT 0 1000
3 GROUPBY 1 @n1 +REDUCERS SORTBY 2 @n1 DESC LIMIT 0 1000
3 GROUPBY 2 @g1 @n1 +REDUCERS SORTBY 4 @n1 ASC @g1 DESC LIMIT 0 1000
2 GROUPBY 1 @<<anyfield>> +REDUCERS
2 GROUPBY 0 +REDUCERS
1 GROUPBY 1 @g1 +REDUCERS APPLY <<value>> AS later SORTBY 2 @g1 ASC LIMIT 0 1000
1 GROUPBY 1 @g1 +REDUCERS FILTER <<cond>> SORTBY 2 @g1 ASC LIMIT 0 1000`,
	"REDUCERS": "3 +REDUCER\n3 +REDUCER +REDUCER\n1 +REDUCER +REDUCER +REDUCER",
	"REDUCER": `
5 REDUCE COUNT 0 AS c
3 REDUCE COUNT 0
3 REDUCE SUM 1 @<<anyfield>> AS s
3 REDUCE SUM 1 @n1
2 REDUCE AVG 1 @n1 AS avg
2 REDUCE MIN 1 @n1 AS min
2 REDUCE MAX 1 @n1 AS max
2 REDUCE STDDEV 1 @n1 AS dev
2 REDUCE QUANTILE 2 @n1 0.5 AS q5
1 REDUCE QUANTILE 2 @n1 0.9
1 REDUCE QUANTILE 2 @n1 <<quantile>> AS q
3 REDUCE TOLIST 1 @<<anyfield>> AS list
2 REDUCE FIRST_VALUE 1 @<<anyfield>> AS first
2 REDUCE FIRST_VALUE 3 @<<anyfield>> BY @n1 AS first3
2 REDUCE FIRST_VALUE 4 @t1 BY @n1 <<direction>> AS first4
1 REDUCE RANDOM_SAMPLE 2 @<<anyfield>> 1000 AS sample
2 REDUCE COUNT_DISTINCT 1 @<<anyfield>> AS d
2 REDUCE COUNT_DISTINCTISH 1 @<<anyfield>> AS dish
1@9 REDUCE NOPE 0
1@9 REDUCE SUM 0`,
	"quantile": "1 0\n1 1\n1 0.25\n1 1.5\n1 x",

	"value": `
10 @<<sortfield>>
5 @n1
4 <<literal>>
6 <<numeric>>
6 <<function>>
2 (<<value>>)
2 @<<anyfield>>
1 <<cond>>`,
	"numeric":    "5 @n1\n3 <<numliteral>>\n4 <<numeric>> + <<numeric>>\n3 <<numeric>> - <<numeric>>\n3 <<numeric>> * <<numeric>>\n3 <<numeric>> / <<numeric>>\n2 <<numeric>> % <<numeric>>\n2 <<numeric>> ^ <<numeric>>\n2 (<<numeric>>)\n2 @<<numericfield>>\n3 <<numfunction>>",
	"numliteral": "3 2\n2 3\n1 0\n1 10.5\n1 -1\n1 1e3",
	"literal":    "3 <<numliteral>>\n3 '<<word>>'\n1 \"<<word>>\"\n1 ''\n1 NULL",
	"numfunction": `
2 sqrt(<<numeric>>)
2 abs(<<numeric>>)
2 ceil(<<numeric>>)
2 floor(<<numeric>>)
1 log(<<numeric>>)
1 log2(<<numeric>>)
1 exp(<<numeric>>)
2 strlen(<<string>>)
2 contains(<<string>>, <<string>>)
2 startswith(<<string>>, <<string>>)
2 to_number(<<value>>)
1 <<time>>(<<numeric>>)
1 <<time>>(@n1 * 10000000)
1 geodistance(@<<geofield>>, '13.5,52.5')
1 geodistance(13, 52, 14, 53)
1 geodistance(@<<geofield>>, 13.5, 52.5)`,
	"time":   "1 minute\n1 hour\n1 day\n1 month\n1 dayofmonth\n1 dayofweek\n1 dayofyear\n1 monthofyear\n1 year",
	"string": "4 @<<textfield>>\n3 @<<tagfield>>\n4 '<<word>>'\n2 lower(<<string>>)\n2 upper(<<string>>)\n1 @n1\n1 ''",
	"function": `
3 lower(<<string>>)
3 upper(<<string>>)
3 substr(<<string>>, <<offset>>, <<offset>>)
3 <<numfunction>>
2 format('%s-%s', <<value>>, <<value>>)
1 format('%s %%', <<value>>)
1 format('%d', <<value>>)
3 split(<<string>>)
1 split(<<string>>, 'e')
1 split(<<string>>, ' ', 'r')
2 to_str(<<value>>)
2 exists(@<<anyfield>>)
2 timefmt(@n1)
1 timefmt(@n1 * 100000, '%Y %j %a %d %H')
1 parsetime('<<number>> 11 2020', '%d %m %Y')
1 parsetime(timefmt(@n1 * 1000), '%FT%TZ')
1 matched_terms()
1 matched_terms(1)
1 case(<<cond>>, <<value>>, <<value>>)
1@9 nope(<<value>>)
1@9 upper()`,
	"offset": "2 0\n2 1\n2 2\n1 -1\n1 -3\n1 100",
	"cond": `
5 @n1 > <<numliteral>>
3 @n1 == <<numliteral>>
3 <<value>> < <<value>>
2 <<value>> >= <<value>>
2 <<value>> == <<value>>
2 <<value>> != <<value>>
2 <<cond>> && <<cond>>
2 <<cond>> || <<cond>>
1 !<<cond>>
1 (<<cond>>)
1 !(<<cond>>)
2 <<value>>`,
}

// line is an alternative of a rule.
type line struct {
	text    string
	dialect int
	// upTo is the sum of the weights up to this line.
	upTo int
}

var parsed = func() map[string][]line {
	all := map[string][]line{}
	for name, text := range grammar {
		sum := 0
		for l := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
			head, body, _ := strings.Cut(l, " ")
			weight, dialect, _ := strings.Cut(head, "@")
			n, err := strconv.Atoi(weight)
			if err != nil {
				panic("searches: no weight in " + l)
			}
			d, _ := strconv.Atoi(dialect)
			sum += n
			all[name] = append(all[name], line{text: body, dialect: d, upTo: sum})
		}
	}
	return all
}()

// fill returns the text for a name that is not a rule.
func (g *generator) fill(name string) (string, bool) {
	switch name {
	case "word":
		w := g.vocabulary()
		return strings.NewReplacer(".", "\\.").Replace(w), true
	case "textfield":
		return g.named("TEXT", false).name, true
	case "tagfield":
		return g.named("TAG", false).name, true
	case "numericfield":
		return g.named("NUMERIC", false).name, true
	case "geofield":
		return g.named("GEO", false).name, true
	case "vectorfield":
		return g.named("VECTOR", false).name, true
	case "anyfield":
		// The reference takes a vector for a text that ends at its first zero byte.
		return g.named(g.pick("TEXT", "TEXT", "TAG", "TAG", "NUMERIC", "NUMERIC", "GEO"), false).name, true
	case "scalarfield":
		return g.named(g.pick("TEXT", "TAG", "NUMERIC"), false).name, true
	case "sortablefield":
		return g.named("", true).name, true
	case "number":
		return g.number(), true
	case "key":
		return g.key(), true
	case "vector":
		return g.vector(g.named("VECTOR", false)), true
	}
	return "", false
}
