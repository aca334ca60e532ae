// Package text turns text into the terms of an index: words, their stems, codes of their sound, and groups of synonyms. It is
// pure: it knows no index, no query language and no server, and has no locks.
//
// The rooms:
//
//   - tokenizer.go cuts a text into words (Tokenizer). It folds case, resolves escapes and leaves stop-words out.
//   - stopwords.go has the sets of words that are not indexed (Stopwords).
//   - language.go has the languages and their stemmers (Language, Stemmer).
//   - metaphone.go has Double Metaphone (AppendMetaphone).
//   - synonyms.go has the groups of words that mean the same (Synonyms).
//   - term.go has the prefixes that keep these kinds of terms apart in one dictionary.
//
// An indexer runs a Tokenizer over each TEXT value. For a word it adds the word itself; Stem + the stem, if the word has at
// least MinStem bytes and the stem differs; Sound + the code, if the field is phonetic and the word has at least MinSound
// bytes; and each group of Synonyms.Groups. All of them have the position of the word. Package query makes the same terms out
// of the words of a query (Expand there), so both sides call the functions of this package and nothing else.
//
// The tokenizer's only separators are ASCII punctuation and blanks. All bytes from 0x80 on belong to words, so a text in a script
// without blanks is one word, except in Chinese, where each Han character is a word of its own.
package text
