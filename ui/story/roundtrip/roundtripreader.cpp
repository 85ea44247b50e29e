// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/roundtrip/roundtripreader.h"

#include <utility>

namespace klineage::ui {

void RoundtripReader::look(const std::filesystem::path &lineageDirectory)
{
    const bool isElsewhere = m_directory != lineageDirectory;
    if (m_isReading && !isElsewhere)
        return;
    if (isElsewhere) {
        m_record.reset();
        m_problem.clear();
        m_stamp.clear();
        m_directory = lineageDirectory;
    }
    if (lineageDirectory.empty()) {
        m_reading.cancel();
        m_isReading = false;
        m_record = std::make_shared<run::RoundtripRecord>();
        return;
    }
    m_isReading = true;
    m_reading.start(interactivePool(), [this, lineageDirectory, before = m_stamp](const std::stop_token &stop,
                                                                                  const JobSlot::Post &post) {
        std::string now = run::roundtripStamp(lineageDirectory);
        std::shared_ptr<const run::RoundtripRecord> record;
        QString problem;
        if (now != before) {
            Result<run::RoundtripRecord> read = run::readRoundtripRecord(lineageDirectory, stop);
            if (read)
                record = std::make_shared<run::RoundtripRecord>(std::move(*read));
            else
                problem = QString::fromStdString(read.error().message);
        }
        if (stop.stop_requested())
            return;
        post([this, now = std::move(now), record = std::move(record), problem] {
            m_isReading = false;
            if (now == m_stamp)
                return;
            m_stamp = now;
            m_record = record;
            m_problem = problem;
            emit changed();
        });
    });
}

} // namespace klineage::ui
