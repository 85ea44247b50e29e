// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/surfaces/surface.h"

#include <algorithm>
#include <array>

namespace klineage::kernel {

namespace {

constexpr std::string_view otherOpenClNames[] = {"cl"};
constexpr std::string_view otherCudaNames[] = {"cu", "cuh", "c++", "cpp", "cuda-c++", "cuda_cpp"};
constexpr Dialect openClDialect = {"__kernel", "kernel", "__kernel", false, true};
constexpr Dialect cudaDialect = {"__global__", "", "extern \"C\" __global__", true, false};

} // namespace

const SurfaceRow openClRow = {
    .language = {"opencl", "OpenCL C", ".cl", "opencl", "c", "/*", "*/", otherOpenClNames},
    .device = DeviceKind::OpenCl,
    .compiledApart = false,
    .includes = "An OpenCL candidate can include no files: what it needs has to be in its own.",
    .dialect = &openClDialect,
};

const SurfaceRow cudaRow = {
    .language = {"cuda", "CUDA C++", ".cu", "cuda", "cuda", "/*", "*/", otherCudaNames},
    .device = DeviceKind::Cuda,
    .compiledApart = true,
    .includes =
        "A CUDA candidate can include the headers of the CUDA Toolkit, such as cuda_fp16.h, "
        "mma.h, cuda_pipeline.h or cuda/std/cstdint, those of the standard library that device code uses, such as cstdint, "
        "cmath, limits or algorithm, and no other file.",
    .dialect = &cudaDialect,
    .planExample = "rederive-plan",
};

const SurfaceRow tritonRow = {
    .language = {"triton", "Triton", ".py", "python", "python", "\"\"\"", "\"\"\"", {}, "Python Kernels"},
    .device = DeviceKind::Cuda,
    .compiledApart = true,
    .includes = "A Triton candidate can import triton and triton.language, and no other module.",
    .compilerDecides = true,
    .takesHints = true,
};

const SurfaceRow tilelangRow = {
    .language = {"tilelang", "TileLang", ".py", "python", "python", "\"\"\"", "\"\"\"", {}, "Python Kernels"},
    .device = DeviceKind::Cuda,
    .compiledApart = true,
    .includes = "A TileLang candidate can import tilelang and tilelang.language, and no other module.",
    .compilerDecides = true,
};

namespace {

const std::array<const SurfaceRow *, 4> shippedRows = {&cudaRow, &openClRow, &tritonRow, &tilelangRow};

std::vector<const SurfaceRow *> &rows()
{
    static std::vector<const SurfaceRow *> all(shippedRows.begin(), shippedRows.end());
    return all;
}

std::string lowered(std::string_view text)
{
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return out;
}

template <typename Member>
std::vector<std::string> distinct(const std::vector<Language> &languages, Member member)
{
    std::vector<std::string> values;
    for (const Language &language : languages) {
        if (std::find(values.begin(), values.end(), language.*member) == values.end())
            values.emplace_back(language.*member);
    }
    return values;
}

} // namespace

std::vector<Surface> allSurfaces()
{
    std::vector<Surface> all;
    for (const SurfaceRow *row : rows())
        all.emplace_back(*row);
    return all;
}

const char *toString(Surface surface)
{
    return surface.language().word;
}

std::optional<Surface> surfaceFromString(std::string_view word)
{
    for (const SurfaceRow *row : rows()) {
        if (word == row->language.word)
            return Surface(*row);
    }
    return std::nullopt;
}

std::optional<Surface> surfaceOfFile(const std::filesystem::path &file)
{
    const std::string extension = file.extension().string();
    for (const SurfaceRow *row : rows()) {
        if (extension == row->language.extension)
            return Surface(*row);
    }
    return std::nullopt;
}

Surface surfaceOfCode(std::string_view code)
{
    for (const SurfaceRow *row : rows()) {
        if (row->dialect && code.find(row->dialect->kernelWord) != std::string_view::npos)
            return Surface(*row);
    }
    return Surface(*rows().front());
}

Surface surfaceOn(DeviceKind device)
{
    const auto found = std::find_if(rows().begin(), rows().end(),
                                    [device](const SurfaceRow *row) { return row->device == device; });
    return found == rows().end() ? Surface() : Surface(**found);
}

std::vector<std::pair<std::string, Surface>> surfaceWords()
{
    std::vector<std::pair<std::string, Surface>> words;
    for (const SurfaceRow *row : rows())
        words.emplace_back(row->language.word, Surface(*row));
    return words;
}

std::vector<std::string> surfaceNames()
{
    return distinct(allLanguages(), &Language::word);
}

std::vector<std::string> surfaceExtensions()
{
    std::vector<std::string> extensions = distinct(allLanguages(), &Language::extension);
    std::sort(extensions.begin(), extensions.end());
    return extensions;
}

std::vector<Language> allLanguages()
{
    std::vector<Language> languages;
    for (const SurfaceRow *row : rows())
        languages.push_back(row->language);
    return languages;
}

std::optional<Language> languageOfFile(const std::filesystem::path &file)
{
    const std::string extension = file.extension().string();
    for (const Language &language : allLanguages()) {
        if (extension == language.extension)
            return language;
    }
    return std::nullopt;
}

std::optional<Language> languageCalled(std::string_view name)
{
    const std::string wanted = lowered(name);
    for (const Language &language : allLanguages()) {
        if (wanted == language.word || wanted == lowered(language.name)
            || std::find(language.otherNames.begin(), language.otherNames.end(), wanted)
                   != language.otherNames.end())
            return language;
    }
    return std::nullopt;
}

std::vector<std::string> languageNames()
{
    return distinct(allLanguages(), &Language::word);
}

ExtraSurface::ExtraSurface(const SurfaceRow &row)
    : m_row(row)
{
    rows().push_back(&m_row);
}

ExtraSurface::~ExtraSurface()
{
    std::erase(rows(), &m_row);
}

} // namespace klineage::kernel
