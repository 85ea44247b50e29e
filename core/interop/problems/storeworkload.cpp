// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/problems/storeworkload.h"

#include "core/files/atomicfile.h"
#include "core/files/formatnumber.h"

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
    return files::writeFileAtomic(folder / "workload.toml",
                                  files::withFormat(workload::writeWorkload(workload)));
}

Result<fs::path> keepReplaced(const fs::path &folder)
{
    std::error_code problem;
    int number = 1;
    while (fs::exists(folder / ("replaced-" + std::to_string(number)), problem))
        ++number;
    fs::path kept = folder / ("replaced-" + std::to_string(number));
    const auto failed = [&kept](const std::error_code &why) {
        return fail(ErrorCode::Io,
                    "Cannot keep what is replaced in '" + kept.string() + "': " + why.message() + '.');
    };
    if (problem || !fs::create_directory(kept, problem))
        return failed(problem);
    for (const char *name : {referenceName, "workload.toml"}) {
        if (!fs::exists(folder / name, problem))
            continue;
        fs::copy_file(folder / name, kept / name, problem);
        if (problem)
            return failed(problem);
    }
    return kept;
}

} // namespace klineage::interop
