package aws

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/enipool/enipool/pkg/cloud"
	"github.com/enipool/enipool/pkg/cloud/driver"
	"github.com/enipool/enipool/pkg/cloud/wire"
)

// request is a call of the EC2 client, as a method value.
type request[I, O any] func(context.Context, *I, ...func(*ec2.Options)) (*O, error)

// read makes a call that changes nothing; there are calls when a Driver is connected. The SDK repeats it where that may help.
func read[I, O any](ctx context.Context, d *Driver, do *request[I, O], in *I) (*O, error) {
	return send(ctx, d, false, do, in)
}

// change makes a call that changes something, once: most have no token, so that a
// second try would be a second change.
func change[I, O any](ctx context.Context, d *Driver, do *request[I, O], in *I) (*O, error) {
	return send(ctx, d, true, do, in, func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
}

func send[I, O any](ctx context.Context, d *Driver, mutates bool, do *request[I, O], in *I, options ...func(*ec2.Options)) (*O, error) {
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, because(cloud.ErrUnavailable, "given up before the call: %v", err)
	}
	var sent wire.Sent
	options = append(options, func(o *ec2.Options) { o.APIOptions = append(o.APIOptions, d.listen(&sent)) })
	out, err := (*do)(ctx, in, options...)
	if err != nil {
		return nil, d.failure(err, mutates, sent.Load())
	}
	return out, nil
}

// counted is a Retryer by which a read that is made again is asked for first.
type counted struct{ aws.RetryerV2 }

// GetRetryToken implements aws.Retryer: the SDK calls it before each try but the first.
func (c counted) GetRetryToken(ctx context.Context, failed error) (release func(error) error, err error) {
	if err := driver.Again(ctx); err != nil {
		return nil, err
	}
	return c.RetryerV2.GetRetryToken(ctx, failed)
}

// page asks for one page of what filters select, nil being the first, and returns where the
// next one begins.
type page[T any] func(filters []types.Filter, token *string) (list []T, next *string, err error)

// listAll returns what is on all pages.
func listAll[T any](filters []types.Filter, ask page[T]) (all []T, err error) {
	var token *string
	for {
		some, next, err := ask(filters, token)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		switch {
		case aws.ToString(next) == "":
			return all, nil
		case token != nil && *token == *next:
			return nil, errSamePage()
		}
		token = next
	}
}

// listByID returns those that have one of the IDs, by a filter: named as IDs, one that EC2
// does not know would fail the question after all.
func listByID[T any](filter string, ids []string, ask page[T]) (all []T, err error) {
	for some := range slices.Chunk(ids, perFilter) {
		list, err := listAll(anyOf(filter, some), ask)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

func errSamePage() error {
	return because(cloud.ErrUnavailable, "EC2 gives the same page again and again")
}

// listen notes when a request is on its way, and has each answer tell the clock what time it
// is in EC2.
func (d *Driver) listen(sent *wire.Sent) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("enipool", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			out, meta, err := next.HandleDeserialize(sent.Trace(ctx), in)
			if answer, ok := out.RawResponse.(*smithyhttp.Response); ok && answer.StatusCode > 0 {
				sent.Store(true) // the SDK makes one without a status where there is none
			}
			theirs, told := awsmiddleware.GetServerTime(meta)
			if ours, answered := awsmiddleware.GetResponseAt(meta); told && answered {
				d.clock.Note(ours, theirs)
			}
			return out, meta, err
		}), middleware.Before)
	}
}
