package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"oda"
	"oda/internal/rawjson"
)

// Bounds of a request.
const (
	requestTime = 20 * time.Second
	answerBytes = 16 << 20
)

// Target is an archive as clients see it.
type Target struct {
	// URL returns the address of the API, including /api/v1, of any server for
	// the next request. It waits while there is none.
	URL func(ctx context.Context) (string, error)
	// HTTP sends the requests.
	HTTP *http.Client
}

// wire is one HTTP request.
type wire struct {
	method, path, body string
	header             map[string]string
}

// answer is a clear answer, or the zero value.
type answer struct {
	status int
	body   []byte
}

// send sends a request. If there is no answer, or none that says how it went,
// it returns the zero answer. An answer that the archive must not give is an
// error.
func (t Target) send(ctx context.Context, w wire) (answer, error) {
	url, err := t.URL(ctx)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, w.method, url+w.path, strings.NewReader(w.body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range w.header {
		r.Header.Set(name, value)
	}
	resp, err := t.HTTP.Do(r)
	if err != nil {
		return answer{}, nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if err != nil {
		return answer{}, nil
	}
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNotFound, http.StatusPreconditionFailed, http.StatusUnprocessableEntity:
		return answer{resp.StatusCode, body}, nil
	case http.StatusServiceUnavailable:
		return answer{}, nil
	}
	return answer{}, fmt.Errorf("%s %s answers %d: %s", w.method, w.path, resp.StatusCode, body)
}

// wireDocument is a document of a game in JSON.
type wireDocument struct {
	Value    string        `json:"marker"`
	Metadata *wireMetadata `json:"metadata,omitempty"`
	Records  *[]wireRecord `json:"request_responses,omitempty"`

	SBD string `json:"sbd_id,omitempty"`
	SBI string `json:"sbi_id,omitempty"`
	EB  string `json:"eb_id,omitempty"`
	PRJ string `json:"prj_id,omitempty"`
}

type wireRecord struct {
	Request string `json:"request"`
}

type wireMetadata struct {
	Version        int64  `json:"version"`
	CreatedBy      string `json:"created_by"`
	CreatedOn      string `json:"created_on"`
	LastModifiedBy string `json:"last_modified_by"`
	LastModifiedOn string `json:"last_modified_on"`
}

func (m wireMetadata) metadata() oda.Metadata {
	return oda.Metadata{
		Version: m.Version, CreatedBy: m.CreatedBy, CreatedOn: instant(m.CreatedOn),
		LastModifiedBy: m.LastModifiedBy, LastModifiedOn: instant(m.LastModifiedOn),
	}
}

func onWire(m oda.Metadata) *wireMetadata {
	return &wireMetadata{m.Version, m.CreatedBy, m.CreatedOn.String(), m.LastModifiedBy, m.LastModifiedOn.String()}
}

// encode returns the document of a put.
func (p put) encode(ref oda.Ref, value string) wireDocument {
	d := wireDocument{Value: value}
	switch ref.Kind {
	case oda.SBDefinition:
		d.SBD = ref.ID
	case oda.SBInstance:
		d.SBI = ref.ID
	case oda.ExecutionBlock:
		d.EB = ref.ID
	case oda.Project:
		d.PRJ = ref.ID
	}
	if p.Claim != nil {
		d.Metadata = onWire(*p.Claim)
	}
	if p.Listed {
		list := make([]wireRecord, len(p.Records))
		for i, r := range p.Records {
			list[i].Request = r
		}
		d.Records = &list
	}
	return d
}

func (d wireDocument) decode() (document, error) {
	if d.Metadata == nil {
		return document{}, errors.New("the answer has no metadata")
	}
	shown := document{Metadata: d.Metadata.metadata(), Value: d.Value, Listed: d.Records != nil}
	if shown.Listed {
		for _, r := range *d.Records {
			shown.Records = append(shown.Records, r.Request)
		}
	}
	return shown, nil
}

// decodeDocument decodes an answer with one document.
func decodeDocument(body []byte) ([]document, error) {
	var d wireDocument
	if err := json.Unmarshal(body, &d); err != nil {
		return nil, err
	}
	one, err := d.decode()
	return []document{one}, err
}

// decodeSeveral decodes an answer with the documents of the entities.
func decodeSeveral(body []byte, refs []oda.Ref) ([]document, error) {
	var collections map[string][]wireDocument
	if err := json.Unmarshal(body, &collections); err != nil {
		return nil, err
	}
	documents := make([]document, len(refs))
	for i, ref := range refs {
		name := ref.Kind.Collection()
		if len(collections[name]) == 0 {
			return nil, fmt.Errorf("the answer lacks %s", ref.ID)
		}
		var err error
		if documents[i], err = collections[name][0].decode(); err != nil {
			return nil, err
		}
		collections[name] = collections[name][1:]
	}
	return documents, nil
}

func decodeRecorded(body []byte) (*recorded, error) {
	var r struct {
		Sequence int64
		Metadata wireMetadata
	}
	err := json.Unmarshal(body, &r)
	return &recorded{r.Sequence, r.Metadata.metadata()}, err
}

// decodeFaults decodes what a refusal says about each document. The documents
// are at the given places of the request.
func decodeFaults(body []byte, places []string) ([]told, error) {
	var problem struct {
		Type   string
		Errors []oda.Fault
	}
	if err := json.Unmarshal(body, &problem); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(problem.Type, ":"+string(oda.MetadataMismatch)) {
		return nil, fmt.Errorf("a refusal without a reason: %s", body)
	}
	faults := make([]told, len(places))
	for i, place := range places {
		faults[i] = told{}
		for _, f := range problem.Errors {
			field, here := strings.CutPrefix(f.Pointer, place+"/metadata/")
			_, stored, says := strings.Cut(f.Detail, "stored is ")
			if !here || strings.Contains(field, "/") {
				continue
			}
			if !says {
				return nil, fmt.Errorf("a refusal does not say what is stored: %s", body)
			}
			faults[i][field] = stored
		}
	}
	return faults, nil
}

// marshal encodes without HTML escapes.
func marshal(v any) string {
	text, err := rawjson.Marshal(v)
	if err != nil {
		panic(err) // plain structures only
	}
	return string(text)
}

// places returns the place of each entity in a request that stores several.
func places(refs []oda.Ref) []string {
	next := make(map[oda.Kind]int)
	at := make([]string, len(refs))
	for i, ref := range refs {
		at[i] = "/" + ref.Kind.Collection() + "/" + strconv.Itoa(next[ref.Kind])
		next[ref.Kind]++
	}
	return at
}
