// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/surfaces/device.h"

#include <filesystem>
#include <span>

// A surface is what a candidate is written for: a language on a device. surfaces.cpp has the table, a row each.
//
// A new surface brings
//   - a row in surfaces.cpp. With it candidates, lineages, requests, trials, runs, cards and file names know its word and extension,
//     and the gate which worker runs it;
//   - where it is compiled apart from the worker, its compiler: a folder in core/device with a function that turns a CompileRequest
//     into a binary that the device's backend loads (core/device/compilers.h), or, where that needs a process of its own, a folder in
//     core/gate with a LanguageProcess (core/gate/session/languageprocess.h);
//   - where its device is new too: a row in device.cpp and a Backend (core/device/backend.h).
// Nothing outside asks which row it is: it asks the row for what it needs, and DeviceTraits says where a kind of device is asked for.
// What it should also have, and works without: a syntax definition in resources/syntax whose name is the language's, candidates in
// tests/gate/corpus, a workload's lineage.

namespace klineage::kernel {

/// A language that kernels are written in.
struct Language {
    const char *word;        ///< "cuda": in scopes of cards
    const char *name;        ///< "CUDA C++", for people; the name of its syntax definition
    const char *extension;   ///< ".cu"
    const char *fence;       ///< after ``` in the library's Markdown
    const char *commonFence; ///< after ``` for a reader who may not know that one: "c"
    const char *commentOpen; ///< of the comment that holds a candidate's plan
    const char *commentClose;
    std::span<const std::string_view> otherNames = {}; ///< what else it is called, in lower case
    const char *syntax =
        nullptr; ///< the name of its syntax definition, where that is another one than its own
};

/// How a language like C marks the functions that the host can launch: what code says without being compiled.
struct Dialect {
    std::string_view kernelWord; ///< "__global__"
    std::string_view shortWord;  ///< the same without its underscores; empty: there is none
    const char *declaration;     ///< how a kernel begins, for people: "extern \"C\" __global__"
    bool needsCLinkage;          ///< names in the binary are others without extern "C"
    bool indicesAreCalls;        ///< get_global_id(0); otherwise members: blockIdx.x
};

struct SurfaceRow {
    Language language; ///< its word is the surface's, and unique
    DeviceKind device;
    /// The compiler process turns the text into a binary, which the worker loads. Otherwise the worker's own driver takes the text.
    bool compiledApart;
    const char *includes; ///< what a source may include, a sentence: the hint when it includes something else
    const Dialect *dialect = nullptr;  ///< nullptr: it is not like C, and its code is not looked into
    const char *planExample = nullptr; ///< the prompt that shows every key of a plan for it; nullptr: none
    /// The compiler says how many threads a block has, how much shared memory, and how tensor maps are cut. It is told of the plan's
    /// launches and of the types of what they pass, which are none of the language's.
    bool compilerDecides = false;
    /// …and a launch gives it hints: 'num_warps', 'num_stages' and 'multiples_of_16'. Otherwise the source itself has what it needs.
    bool takesHints = false;
};

/// A row of the table, by reference. Copies are free; two are equal when they are of the same row.
class Surface
{
public:
    static const Surface Cuda;     ///< CUDA C++
    static const Surface Triton;   ///< Triton, on the CUDA device
    static const Surface Tilelang; ///< TileLang, on the CUDA device
    static const Surface OpenCl;   ///< OpenCL C

    /// OpenCL C, which runs on any machine.
    constexpr Surface() noexcept;
    /// row: outlives this.
    explicit constexpr Surface(const SurfaceRow &row) noexcept
        : m_row(&row)
    {}

    [[nodiscard]] constexpr const SurfaceRow *operator->() const noexcept { return m_row; }
    [[nodiscard]] constexpr const Language &language() const noexcept { return m_row->language; }
    [[nodiscard]] const DeviceTraits &device() const { return traitsOf(m_row->device); }

    friend constexpr bool operator==(Surface a, Surface b) noexcept { return a.m_row == b.m_row; }

private:
    const SurfaceRow *m_row;
};

extern const SurfaceRow cudaRow;
extern const SurfaceRow openClRow;
extern const SurfaceRow tritonRow;
extern const SurfaceRow tilelangRow;

constexpr Surface::Surface() noexcept
    : m_row(&openClRow)
{}
inline constexpr Surface Surface::Cuda{cudaRow};
inline constexpr Surface Surface::OpenCl{openClRow};
inline constexpr Surface Surface::Triton{tritonRow};
inline constexpr Surface Surface::Tilelang{tilelangRow};

[[nodiscard]] std::vector<Surface> allSurfaces();
[[nodiscard]] const char *toString(Surface surface); ///< its language's word: "cuda", "opencl"
[[nodiscard]] std::optional<Surface> surfaceFromString(std::string_view word);
/// By the extension; nothing when no surface has it. The first where several do: which of them a candidate is written in its plan says.
[[nodiscard]] std::optional<Surface> surfaceOfFile(const std::filesystem::path &file);
/// Whose word for a kernel the code has; the table's first when none has.
[[nodiscard]] Surface surfaceOfCode(std::string_view code);
/// The first that runs on it: what the gate's own kernels for it are written in.
[[nodiscard]] Surface surfaceOn(DeviceKind device);

[[nodiscard]] std::vector<std::pair<std::string, Surface>> surfaceWords();
[[nodiscard]] std::vector<std::string> surfaceNames();      ///< the words alone
[[nodiscard]] std::vector<std::string> surfaceExtensions(); ///< ".cl", ".cu": sorted

/// Those that cards can be about.
[[nodiscard]] std::vector<Language> allLanguages();
[[nodiscard]] std::optional<Language> languageOfFile(
    const std::filesystem::path &file); ///< the first with its extension
/// By word, name or another name, whatever the case.
[[nodiscard]] std::optional<Language> languageCalled(std::string_view name);
[[nodiscard]] std::vector<std::string> languageNames(); ///< their words

/// A row beside those of surfaces.cpp while it lives: for tests and for languages that come from outside. Not while other threads
/// use the table. A word or an extension that is taken stays with its owner.
class ExtraSurface
{
public:
    explicit ExtraSurface(const SurfaceRow &row);
    ~ExtraSurface();
    ExtraSurface(const ExtraSurface &) = delete;
    ExtraSurface &operator=(const ExtraSurface &) = delete;

    [[nodiscard]] Surface surface() const { return Surface(m_row); }

private:
    SurfaceRow m_row;
};

} // namespace klineage::kernel
