package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/enipool/enipool/pkg/devices"
)

const (
	// lookup is how long the API server may take to tell of a claim. The kubelet asks again.
	lookup = 10 * time.Second
	// patience is how long an end waits for calls under way.
	patience = 2 * time.Second
)

// serveSockets serves both sockets until ctx ends, one of them fails, or an off plugin has nothing to do any more.
func (p *Plugin) serveSockets(ctx context.Context) error {
	if err := p.prepareFolder(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer p.setRegistered(false)
	plugin, register := grpc.NewServer(), grpc.NewServer()
	dra.RegisterDRAPluginServer(plugin, claimsServer{plugin: p, done: cancel})
	registration.RegisterRegistrationServer(register, registrationServer{plugin: p})
	all, ctx := errgroup.WithContext(ctx)
	// The plugin's socket first: the kubelet calls it as soon as it finds the other one.
	for _, s := range []struct {
		*grpc.Server
		path string
	}{{plugin, p.socketPath()}, {register, p.registrationPath()}} {
		listener, err := new(net.ListenConfig).Listen(ctx, "unix", s.path)
		if err != nil {
			cancel()
			return errors.Join(fmt.Errorf("listen for the kubelet: %w", err), all.Wait())
		}
		all.Go(func() error {
			if err := s.Serve(listener); !errors.Is(err, grpc.ErrServerStopped) {
				return err
			}
			return nil // before it began
		})
		all.Go(func() error { <-ctx.Done(); stopServer(s.Server); return nil })
	}
	return all.Wait()
}

// stopServer lets calls under way end, but not for ever.
func stopServer(s *grpc.Server) {
	late := time.AfterFunc(patience, s.Stop)
	defer late.Stop()
	s.GracefulStop()
}

// registrationServer answers the kubelet that has found the registration socket.
type registrationServer struct {
	registration.UnimplementedRegistrationServer
	plugin *Plugin
}

// GetInfo says what the plugin is.
func (s registrationServer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.DRAPlugin, Name: s.plugin.options.Driver, Endpoint: s.plugin.socketPath(),
		SupportedVersions: []string{dra.DRAPluginService}}, nil
}

// NotifyRegistrationStatus takes in what the kubelet made of it.
func (s registrationServer) NotifyRegistrationStatus(_ context.Context, is *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !is.PluginRegistered {
		s.plugin.options.Log.Warn("the kubelet does not take the plugin: pods with claims for addresses don't start on this node", "error", is.Error)
	}
	s.plugin.setRegistered(is.PluginRegistered)
	return &registration.RegistrationStatusResponse{}, nil
}

// claimsServer prepares claims and has them unprepared.
type claimsServer struct {
	dra.UnimplementedDRAPluginServer
	plugin *Plugin
	done   func() // ends the serving
}

// NodePrepareResources remembers the claims. It is called again for what is prepared already, as after a restart of the kubelet.
func (s claimsServer) NodePrepareResources(ctx context.Context, asked *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	answer := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, c := range asked.Claims {
		is := &dra.NodePrepareResourceResponse{}
		if err := s.prepareClaim(ctx, devices.Claim{UID: c.Uid, Namespace: c.Namespace, Name: c.Name}); err != nil {
			is.Error = err.Error()
		}
		answer.Claims[c.Uid] = is
	}
	return answer, nil
}

func (s claimsServer) prepareClaim(ctx context.Context, claim devices.Claim) error {
	if _, is := s.plugin.records.findClaim(claim.UID); is {
		return nil
	}
	if !s.plugin.options.On {
		return errors.New("prepare the claim: this node reserves no addresses any more (kubernetes.dra in its agent.yaml)")
	}
	ctx, cancel := context.WithTimeout(ctx, lookup)
	defer cancel()
	claim, err := s.plugin.options.Lookup(ctx, claim)
	if err != nil {
		return fmt.Errorf("prepare the claim: %w", err)
	}
	return s.plugin.records.changeClaim(claim, true)
}

// NodeUnprepareResources forgets the claims. One that is not known is done with.
func (s claimsServer) NodeUnprepareResources(_ context.Context, asked *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	answer := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	for _, c := range asked.Claims {
		is := &dra.NodeUnprepareResourceResponse{}
		if err := s.plugin.records.changeClaim(devices.Claim{UID: c.Uid}, false); err != nil {
			is.Error = err.Error()
		}
		answer.Claims[c.Uid] = is
	}
	if !s.plugin.options.On && len(s.plugin.Claims()) == 0 {
		s.done()
	}
	return answer, nil
}
