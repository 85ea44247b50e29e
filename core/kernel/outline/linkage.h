// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/outline/declarations.h"
#include "core/kernel/outline/hostcode.h"

/// Internal to deviceSourceOf(): what it does to the text.
namespace klineage::kernel {

/// Bytes of the code, and what stands there instead.
struct CodeEdit {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string text;
};

/// Gives the kernels of declarations names that a plan can launch them by, where they have none and can get one. launches: of the whole
/// source. What it is constructed of outlives it.
class KernelLinkage
{
public:
    KernelLinkage(std::string_view code, const CodeScan &scan, const std::vector<HostLaunch> &launches);

    void visit(const CodeDeclaration &declaration);
    /// After the last one: a kernel in an unnamed namespace would keep a name of its compiler's.
    void openUnnamedSpaces();
    [[nodiscard]] const std::vector<CodeEdit> &edits() const { return m_edits; }
    [[nodiscard]] std::vector<std::string> notices() const;

private:
    void specialize(const CodeDeclaration &declaration, std::size_t keyword, std::size_t name,
                    std::size_t open);
    [[nodiscard]] std::size_t offsetOf(std::size_t token) const;
    [[nodiscard]] std::size_t endOf(std::size_t token) const;
    [[nodiscard]] CodeEdit removal(std::size_t first, std::size_t last) const;

    std::string_view m_code;
    const CodeScan &m_scan;
    const std::vector<HostLaunch> &m_launches;
    std::vector<CodeEdit> m_edits;
    bool m_opened = false;
    std::vector<std::string> m_named;       ///< kernels that got extern "C"
    std::vector<std::string> m_specialized; ///< "k<128>"
};

} // namespace klineage::kernel
