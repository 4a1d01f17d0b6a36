package summary

import (
	"bytes"

	"oda"
	"oda/internal/rawjson"
)

// The reasons why a key matters for the summary of a document.
const (
	ofName rawjson.Interest = iota + 1
	ofTitle
	ofTargetName
	ofTargetID
	ofOtherWords
	ofRA
	ofRAText
	ofDec
	ofDecText
	ofTelescope
	ofSBDRef
	ofSBDID
	ofSBDVersion
	ofSBIRef
	ofEBRef
	ofPRJRef
	ofOBRef
	ofSBDIDs
	ofObsBlocks
	ofObsProgrammes
	ofObsBlockID
	ofStatus
)

// interest returns the reason why this very key matters, 0 if there is none.
func interest(key []byte) rawjson.Interest {
	switch string(key) {
	case "name":
		return ofName
	case "title":
		return ofTitle
	case "target_name":
		return ofTargetName
	case "target_id":
		return ofTargetID
	case "ra":
		return ofRA
	case "ra_str":
		return ofRAText
	case "dec":
		return ofDec
	case "dec_str":
		return ofDecText
	case "telescope":
		return ofTelescope
	case "sbd_ref":
		return ofSBDRef
	case "sbd_id":
		return ofSBDID
	case "sbd_version":
		return ofSBDVersion
	case "sbi_ref":
		return ofSBIRef
	case "eb_ref":
		return ofEBRef
	case "prj_ref":
		return ofPRJRef
	case "ob_ref":
		return ofOBRef
	case "sbd_ids":
		return ofSBDIDs
	case "obs_blocks":
		return ofObsBlocks
	case "obs_programmes":
		return ofObsProgrammes
	case "obs_block_id":
		return ofObsBlockID
	case "status":
		return ofStatus
	case oda.RecordsField:
		return rawjson.Blind
	}
	return 0
}

// endings marks the last bytes of all keys that matter. It saves the comparisons
// for most other keys.
var endings = [256]bool{'a': true, 'c': true, 'd': true, 'e': true, 'f': true, 'n': true, 'r': true, 's': true}

// Watched returns the reason why a scan of documents should note the value of a
// key, 0 if it should not.
func Watched(key []byte) rawjson.Interest {
	if len(key) == 0 || !endings[key[len(key)-1]] {
		return 0
	}
	if of := interest(key); of != 0 {
		return of
	}
	if hasWords(key) {
		return ofOtherWords
	}
	return 0
}

// hasWords reports whether the strings of a key are searched for words: how it ends
// says so.
func hasWords(key []byte) bool {
	switch key[len(key)-1] {
	case 'e':
		return bytes.HasSuffix(key, []byte("name")) || bytes.HasSuffix(key, []byte("title"))
	case 'n':
		return bytes.HasSuffix(key, []byte("description"))
	case 'd':
		return bytes.HasSuffix(key, []byte("target_id"))
	}
	return false
}
