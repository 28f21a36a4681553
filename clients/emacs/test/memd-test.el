;;; memd-test.el --- memd.el against a real daemon  -*- lexical-binding: t; -*-

;; Run by test/run in a project's directory, with a daemon at $MEMD_SOCKET.

;;; Code:

(require 'ert)
(require 'memd)

(defconst memd-test-path "swifts-nest-under-the-roof.md")

(defun memd-test--save ()
  "Save a line."
  (with-temp-buffer
    (insert "Swifts nest under the roof.\n")
    (memd-save-region (point-min) (point-max) "reference" "swifts nest under the roof")))

(ert-deftest memd-test-1-save ()
  "The region becomes a memory once; a name that is taken is refused."
  (should (string-match-p memd-test-path (memd-test--save)))
  (should-error (memd-test--save) :type 'user-error)
  (when-let ((statement (getenv "MEMD_TEST_SAVE")))
    (with-temp-buffer
      (insert statement "\n")
      (memd-save-region (point-min) (point-max) "project" statement))))

(ert-deftest memd-test-2-search ()
  "A search lists what was saved, here and by another client."
  (memd-search "swifts roof")
  (should (equal (tabulated-list-get-id) memd-test-path))
  (when-let ((word (getenv "MEMD_TEST_EXPECT")))
    (memd-search word)
    (should (tabulated-list-get-id))))

(ert-deftest memd-test-3-show ()
  "A line of the list opens its memory."
  (memd-search "swifts roof")
  (memd-list-show)
  (should (string-match-p "\nSwifts nest under the roof\\." (buffer-string)))
  (should buffer-read-only)
  (should (member memd-test-path (memd--paths))))

(ert-deftest memd-test-4-refusal ()
  "What memd refuses is an error with its words."
  (should (string-match-p "no\\.md" (cadr (should-error (memd-show "no.md") :type 'user-error)))))

(ert-deftest memd-test-5-connection ()
  "A connection that is lost is made again."
  (delete-process (jsonrpc--process memd--connection))
  (should (member memd-test-path (memd--paths)))
  (memd-request 'memory.delete :path memd-test-path)) ; it was only made to be tested

(provide 'memd-test)
;;; memd-test.el ends here
