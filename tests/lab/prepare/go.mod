module safe-drain.test/lab/prepare

go 1.26.0
