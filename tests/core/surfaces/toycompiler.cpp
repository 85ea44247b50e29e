// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gate's compiler process with the toy's compiler in it. A toy that says ERROR does not compile; any other becomes a binary that
// holds no variables: this program's own file.
#include "core/device/worker/worker.h"
#include "core/files/atomicfile.h"

#include <algorithm>
#include <cstring>

using namespace klineage;
using namespace klineage::gate;

namespace {

Result<CompileOutput> compileToy(const CompileRequest &request)
{
    CompileOutput output;
    output.compiler = "toy 1.0";
    if (const std::size_t error = request.source.find("ERROR"); error != std::string::npos) {
        const auto line =
            std::count(request.source.begin(), request.source.begin() + static_cast<long>(error), '\n') + 1;
        output.log = request.name + ":" + std::to_string(line) + ":1: error: it says so\n";
        return output;
    }
    const auto image = files::readFile("/proc/self/exe", std::size_t{64} << 20);
    if (!image)
        return tl::unexpected(image.error());
    output.ok = true;
    output.binary.resize(image->size());
    std::memcpy(output.binary.data(), image->data(), image->size());
    return output;
}

constexpr Compiler toy = {"toy", compileToy};

} // namespace

int main()
{
    return runCompiler({&toy, 1});
}
