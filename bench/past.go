package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
)

// Details of arms. The records of the blocks that are read are few, so that what
// is found, and not what is sent, makes the difference.
const (
	getEntity    = ", GET"
	oldVersion   = ", an old version"
	asOf         = ", as of an instant"
	getBlock     = ", GET of a short block"
	oldBlock     = ", an old version of a long block"
	asOfInBlock  = ", a long block as of an instant"
	shortRecords = 10
)

// runPast compares reading what was with reading what is: an entity with many
// versions, and a block with many records.
func runPast(ctx context.Context, s *stage) error {
	arms, err := s.arms(ctx, func(ctx context.Context, srv *server) ([]arm, error) {
		entity, err := pastEntity(ctx, srv)
		if err != nil {
			return nil, err
		}
		block, err := pastBlock(ctx, srv)
		return append(entity, block...), err
	})
	if err != nil {
		return err
	}
	return s.measure(ctx, table{Columns: plain(cost, rate, p50, p99)}, arms)
}

// pastEntity stores an entity many times.
func pastEntity(ctx context.Context, srv *server) ([]arm, error) {
	busy := srv.stage.plan.busy
	path := api + "/sbds/" + identifier("sbd-past", 0)
	body := documentOf(identifier("sbd-past", 0))
	var versions, instants []request // but for the current version
	for n := 1; n <= srv.stage.plan.versions; n++ {
		answer, err := srv.do(ctx, "PUT", path, body)
		if err != nil {
			return nil, err
		}
		body = answer
		if n == srv.stage.plan.versions {
			break
		}
		at, err := lastModified(body)
		if err != nil {
			return nil, err
		}
		versions = append(versions, get(fmt.Sprintf("%s/versions/%d", path, n)))
		instants = append(instants, get(path+"?at="+at))
	}
	current, err := readEntities(ctx, srv, busy)
	return []arm{
		loadArm(srv, getEntity, current, 1),
		loadArm(srv, oldVersion, shuffled(busy, versions...), 1),
		loadArm(srv, asOf, shuffled(busy, instants...), 1),
	}, err
}

// pastBlock records a few records into a block, stores it again, and records
// very many.
func pastBlock(ctx context.Context, srv *server) ([]arm, error) {
	busy := srv.stage.plan.busy
	ids, err := srv.storeBlocks(ctx, "eb-past", 2)
	if err != nil {
		return nil, err
	}
	short, long := api+"/ebs/"+ids[0], api+"/ebs/"+ids[1]
	for _, id := range ids {
		if err := srv.lengthen(ctx, id, shortRecords); err != nil {
			return nil, err
		}
	}
	body, err := srv.do(ctx, "GET", long, nil)
	if err != nil {
		return nil, err
	}
	if body, err = srv.do(ctx, "PUT", long, body); err != nil {
		return nil, err
	}
	at, err := lastModified(body)
	if err != nil {
		return nil, err
	}
	if err := srv.lengthen(ctx, ids[1], srv.stage.plan.past); err != nil {
		return nil, err
	}
	one := func(detail, path string) arm { return loadArm(srv, detail, shuffled(busy, get(path)), 1) }
	return []arm{one(getBlock, short), one(oldBlock, long+"/versions/1"), one(asOfInBlock, long+"?at="+at)}, nil
}

// lastModified reads when a document was last modified, as a query has it.
func lastModified(body []byte) (string, error) {
	var document struct {
		Metadata struct {
			LastModifiedOn string `json:"last_modified_on"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(body, &document)
	return url.QueryEscape(document.Metadata.LastModifiedOn), err
}
