package oda

import (
	"bytes"

	"oda/internal/rawjson"
)

// What the summary of a document is made of: the interest in each key.
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
)

// keys are those of interest by themselves.
var keys = map[string]rawjson.Interest{
	"name":           ofName,
	"title":          ofTitle,
	"target_name":    ofTargetName,
	"target_id":      ofTargetID,
	"ra":             ofRA,
	"ra_str":         ofRAText,
	"dec":            ofDec,
	"dec_str":        ofDecText,
	"telescope":      ofTelescope,
	"sbd_ref":        ofSBDRef,
	"sbd_id":         ofSBDID,
	"sbd_version":    ofSBDVersion,
	"sbi_ref":        ofSBIRef,
	"eb_ref":         ofEBRef,
	"prj_ref":        ofPRJRef,
	"ob_ref":         ofOBRef,
	"sbd_ids":        ofSBDIDs,
	"obs_blocks":     ofObsBlocks,
	"obs_programmes": ofObsProgrammes,
	"obs_block_id":   ofObsBlockID,
	recordsField:     rawjson.Blind,
}

// wordKeys are the ends of keys whose strings are searched for words.
var wordKeys = [...][]byte{[]byte("name"), []byte("title"), []byte("description"), []byte("target_id")}

// endings marks the last bytes of all of them: most keys end otherwise.
var endings = func() (t [256]bool) {
	for key := range keys {
		t[key[len(key)-1]] = true
	}
	for _, end := range wordKeys {
		t[end[len(end)-1]] = true
	}
	return t
}()

// Watched is what a scan of documents watches for.
func Watched(key []byte) rawjson.Interest {
	if len(key) == 0 || !endings[key[len(key)-1]] {
		return 0
	}
	if of, ok := keys[string(key)]; ok {
		return of
	}
	for _, end := range wordKeys {
		if bytes.HasSuffix(key, end) {
			return ofOtherWords
		}
	}
	return 0
}
