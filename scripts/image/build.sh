#!/usr/bin/env bash
# build.sh RELEASE FOLDER ARCH...: builds what the files of conf/image copy into FOLDER, like
# .build/image, and of it the images beside that, .build/enipool-image.tar and
# .build/enipool-operator-image.tar, under the names that conf/kubernetes has; TAG gives them
# another tag.
set -euo pipefail

release=$1 context=$2
archs=("${@:3}")
beside=$(dirname "$context")
reference=github.com/containernetworking/plugins/plugins
export CGO_ENABLED=0

for arch in "${archs[@]}"; do
	mkdir -p "$context/$arch"
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -gcflags=github.com/vishvananda/...=-l -ldflags "-s -w -X main.release=$release" -o "$context/$arch/" ./plugins/...
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -gcflags=github.com/vishvananda/...=-l -ldflags "-s -w" -o "$context/$arch/" \
		$reference/main/loopback $reference/meta/{portmap,bandwidth}
done
cp LICENSE "$context/"
# image KUSTOMIZATION CONTAINERFILE NAME: one of them
image() {
	local name
	name=$(awk -v tag="${TAG:-}" -v end="/$3\$" '$1 == "-" && $3 ~ end {name = $3} $1 == "newTag:" && name {print name ":" (tag ? tag : $2); exit}' "conf/kubernetes/$1/kustomization.yaml")
	go run ./scripts/image -context "$context" -file "conf/image/$2" -version "$release" -arch "$(IFS=, && echo "${archs[*]}")" -name "$name" -o "$beside/$3-$(basename "$context").tar"
}
image base Containerfile enipool
image operator Containerfile.operator enipool-operator
