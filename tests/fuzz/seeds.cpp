// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/seeds.h"
#include "tests/paths.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

namespace fs = std::filesystem;

void addFile(const FuzzTarget &target, const fs::path &path, std::vector<std::string> &seeds)
{
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    for (const std::string &seed : target.cut ? target.cut(text) : std::vector<std::string>{text}) {
        if (seed.size() <= longestFuzzInput)
            seeds.push_back(seed);
    }
}

} // namespace

std::vector<std::string> collectSeeds(const FuzzTarget &target)
{
    std::vector<std::string> seeds = target.seeds;
    for (const char *folder : {"workloads", "skills"}) {
        const fs::path root = fs::path(klineage::test::sourcePath()) / folder;
        if (!fs::is_directory(root))
            continue;
        std::vector<fs::path> paths;
        for (const auto &entry : fs::recursive_directory_iterator(root)) {
            const std::string name = entry.path().filename().string();
            const auto matches = [&name](const std::string &end) { return name.ends_with(end); };
            if (entry.is_regular_file()
                && std::any_of(target.seedFiles.begin(), target.seedFiles.end(), matches))
                paths.push_back(entry.path());
        }
        std::sort(paths.begin(), paths.end());
        for (const fs::path &path : paths)
            addFile(target, path, seeds);
    }
    return seeds;
}
