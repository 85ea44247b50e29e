// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <cstdio>
#include <string>

namespace klineage::gputest {

/// A line a check, as it ends, and the count at the end.
class Report
{
public:
    void passed(const std::string &check, const std::string &detail = {})
    {
        ++m_passed;
        print("ok   ", check, detail);
    }
    void failed(const std::string &check, const std::string &why)
    {
        ++m_failed;
        print("FAIL ", check, why);
    }
    void skipped(const std::string &check, const std::string &why)
    {
        ++m_skipped;
        print("skip ", check, why);
    }
    void require(bool holds, const std::string &check, const std::string &detail)
    {
        holds ? passed(check, detail) : failed(check, detail);
    }

    /// Prints "3 passed, 0 failed, 1 skipped". 0: all that ran passed; 1: something failed; 77: nothing ran.
    [[nodiscard]] int end() const
    {
        std::printf("%d passed, %d failed, %d skipped\n", m_passed, m_failed, m_skipped);
        return m_failed > 0 ? 1 : m_passed > 0 ? 0 : 77;
    }

private:
    static void print(const char *word, const std::string &check, const std::string &detail)
    {
        std::printf("%s %s%s%s\n", word, check.c_str(), detail.empty() ? "" : ": ", detail.c_str());
        std::fflush(stdout);
    }

    int m_passed = 0;
    int m_failed = 0;
    int m_skipped = 0;
};

} // namespace klineage::gputest
