#!/usr/bin/env bash
# build.sh RELEASE FOLDER ARCH...: builds what the files of conf/image copy into FOLDER, like
# .build/image, and of it the images beside that, .build/enipool-image.tar and
# .build/enipool-operator-image.tar, under the names that conf/kubernetes has, each with its SBOM
# in SPDX beside it. Their tag is RELEASE, so that no two commits share one: with the same tag a
# node would keep the image that it has. TAG gives them another. Where there is no git, REVISION
# and CREATED say which commit it is and of when (2026-01-31T12:00:00Z).
set -euo pipefail

release=$1 context=$2
archs=("${@:3}")
beside=$(dirname "$context")
reference=github.com/containernetworking/plugins/plugins
export CGO_ENABLED=0
tag=${TAG:-$release}
revision=${REVISION:-$(git rev-parse HEAD 2>/dev/null || echo unknown)}
created=${CREATED:-$(TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo 1970-01-01T00:00:00Z)}
case $release in *-dirty) [ "${REVISION-}" ] || revision+=-dirty ;; esac

for arch in "${archs[@]}"; do
	mkdir -p "$context/$arch"
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -gcflags=github.com/vishvananda/...=-l -tags=grpcnotrace -ldflags "-s -w -X main.release=$release" -o "$context/$arch/" ./plugins/...
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -gcflags=github.com/vishvananda/...=-l -ldflags "-s -w" -o "$context/$arch/" \
		$reference/main/loopback $reference/meta/{portmap,bandwidth}
done
cp LICENSE "$context/"
# image KUSTOMIZATION CONTAINERFILE NAME: one of them
image() {
	local name
	name=$(awk -v end="/$3\$" '$1 == "-" && $3 ~ end {print $3; exit}' "conf/kubernetes/$1/kustomization.yaml")
	go run ./scripts/image -context "$context" -file "conf/image/$2" -version "$release" -revision "$revision" -created "$created" \
		-arch "$(IFS=, && echo "${archs[*]}")" -name "$name:$tag" -o "$beside/$3-$(basename "$context").tar"
}
image base Containerfile enipool
image operator Containerfile.operator enipool-operator
