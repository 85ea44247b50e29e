// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/problems/storeworkload.h"

#include "core/files/atomicfile.h"

namespace klineage::interop {

namespace fs = std::filesystem;

Status storeWorkload(const fs::path &workloads, workload::Workload workload)
{
    std::error_code problem;
    const fs::path folder = workloads / workload.name;
    fs::create_directories(folder, problem);
    if (problem)
        return fail(ErrorCode::Io, "Cannot create '" + folder.string() + "': " + problem.message() + '.');
    if (auto written = files::writeFileAtomic(folder / referenceName, workload.python->source); !written)
        return written;
    workload.python->source.clear();
    workload.python->file = referenceName;
    return files::writeFileAtomic(folder / "workload.toml", workload::writeWorkload(workload));
}

} // namespace klineage::interop
