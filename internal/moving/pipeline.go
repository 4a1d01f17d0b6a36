package moving

import "context"

// pipeline does work on what produce hands over, several at once, and consumes the
// results in order. It ends with the first error.
func pipeline[In, Out any](ctx context.Context, atOnce int, produce func(context.Context, func(In) error) error, work func(In) (Out, error), consume func(Out) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type result struct {
		out  Out
		err  error
		done chan struct{}
	}
	results := make(chan *result, atOnce+1)
	working := make(chan struct{}, atOnce)
	produced := make(chan error, 1)
	go func() {
		defer close(results)
		produced <- produce(ctx, func(in In) error {
			r := &result{done: make(chan struct{})}
			select {
			case results <- r:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			go func() {
				defer close(r.done)
				working <- struct{}{}
				defer func() { <-working }()
				r.out, r.err = work(in)
			}()
			return nil
		})
	}()
	var failed error
	for r := range results {
		<-r.done
		if failed == nil {
			failed = r.err
		}
		if failed == nil {
			failed = consume(r.out)
		}
		if failed != nil {
			cancel(failed)
		}
	}
	if err := <-produced; failed == nil {
		failed = err
	}
	return failed
}
